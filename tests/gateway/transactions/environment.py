"""What the tests of transactions share: gateways in front of one coordinator, and producers of their own."""

from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support.raw_producer import RawProducer
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

RECORDS = 10
SHORT_MS = 8_000
"""The timeout of a transaction that the broker is to abort, though not before the test has set it up."""
UNSTABLE = ErrorCode.unstable_offset_commit.name


@dataclass
class Environment:
    """Shared by all tests: two gateways for one coordinator, and a topic whose offsets are committed."""

    broker: EmbeddedBroker
    coordinator: CoordinatorProcess
    first: GatewayProcess
    second: GatewayProcess
    topic: str

    def producer(self, name: str = "producer", port: int | None = None, **settings: int) -> RawProducer:
        """An initialized producer with its own group, connected to the first gateway."""
        producer = RawProducer(port or self.first.port, unique(name), unique("group"), self.topic, **settings)
        assert producer.init() is ErrorCode.none
        return producer


def completed_offset(producer: RawProducer) -> int | str:
    """The offset once the transaction is complete."""
    wait_until(lambda: producer.committed_offset() != UNSTABLE, "the transaction is complete", LIMIT_SECONDS)
    return producer.committed_offset()
