"""Offsets share the fate of the transaction in which they were committed, whatever happens to gateways and producers.

The broker, the coordinator and the gateways are real. All gateways but one are as users run them; that one stands still
at chosen steps until it is killed.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode

from streaming.broker import EmbeddedBroker
from tests.clients.process import Process
from tests.streaming.client_support import create_topic, produce, unique, wait_until
from tests.streaming.coordinator_process import CoordinatorProcess
from tests.streaming.gateway import stopping_gateway
from tests.streaming.gateway.clients import consume_all
from tests.streaming.gateway.raw_producer import GROUP, LONG_MS, RawProducer, find_coordinator
from tests.streaming.gateway.wire_client import WireClient

LIMIT_SECONDS = 60.0
RECORDS = 10
SHORT_MS = 8_000
"""Of a transaction that the broker gives up, but not while the test still works on it."""
UNSTABLE = ErrorCode.unstable_offset_commit.name
NOWHERE = "127.0.0.1:0"


class Gateway(Process):
    """A gateway in a process of its own, on free ports; ``module`` is what is run."""

    def __init__(self, name: str, bootstrap_servers: str, prefix: str, module: str = "streaming.cli") -> None:
        command = [sys.executable, "-m", module, "gateway", "--listen", NOWHERE, "--topic-prefix", prefix]
        super().__init__(name, [*command, "--bootstrap-servers", bootstrap_servers])
        self.address = ""

    def start(self) -> None:
        """Start it and return when clients may connect."""
        super().start()
        said = self.await_line("that it is ready", lambda line: "clients connect to " in line)
        self.address = said.partition("clients connect to ")[2].partition(";")[0]

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self.address.rpartition(":")[2])


NewProducer = Callable[..., RawProducer]


@dataclass
class Stage:
    """What all tests share: two gateways for one coordinator, and a topic whose offsets are committed."""

    broker: EmbeddedBroker
    coordinator: CoordinatorProcess
    first: Gateway
    second: Gateway
    topic: str

    def producer(self, name: str = "producer", port: int | None = None, **settings: int) -> RawProducer:
        """A producer at the first gateway, with a group of its own, ready to begin."""
        made = RawProducer(port or self.first.port, unique(name), unique("group"), self.topic, **settings)
        assert made.init() is ErrorCode.none
        return made


@pytest.fixture(scope="module")
def doomed(broker: EmbeddedBroker, coordinator: CoordinatorProcess) -> Iterator[Gateway]:
    """The gateway that stands still."""
    prefix = coordinator.topics.prefix
    gateway = Gateway("doomed", broker.bootstrap_servers, prefix, "tests.streaming.gateway.stopping_gateway")
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.kill()


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("input")
    create_topic(broker.bootstrap_servers, name, 1)
    produce(broker.bootstrap_servers, name, {0: [b"%d" % number for number in range(RECORDS)]})
    return name


@dataclass
class Fate:
    """A producer whose gateway was killed, and what its group's offset was just before."""

    producer: RawProducer
    offset_before: int | str


@pytest.fixture(scope="module")
def fates(doomed: Gateway, topic: str) -> dict[str, Fate]:
    """Every producer has done its part at the gateway that is dead now; by what the tests call them."""
    points = {
        "retried": (stopping_gateway.INTENDED, True),
        "retried-abort": (stopping_gateway.INTENDED, False),
        "restarted": (stopping_gateway.INTENDED, True),
        "abandoned": (stopping_gateway.INTENDED, True),
        "committed": (stopping_gateway.ENDED, True),
        "aborted": (stopping_gateway.ENDED, False),
        "committed-restarted": (stopping_gateway.ENDED, True),
        "told": (stopping_gateway.TOLD, True),
        "told-abort": (stopping_gateway.TOLD, False),
    }
    producers: dict[str, RawProducer] = {}
    for name, (point, _) in points.items():
        timeout_ms = SHORT_MS if name == "abandoned" else LONG_MS
        made = RawProducer(doomed.port, unique(f"{point}-{name}"), unique("group"), topic, timeout_ms)
        assert made.init() is ErrorCode.none
        made.begin(5)
        producers[name] = made
    for name, (_, committed) in points.items():
        producers[name].client.send(producers[name].end_request(committed))
    adding = RawProducer(doomed.port, unique(stopping_gateway.BROKER_HAS_GROUP), unique("group"), topic)
    assert adding.init() is ErrorCode.none
    adding.client.send(adding.add_offsets_request())
    producers["adding"] = adding
    for made in producers.values():
        line = f"stopped {made.transactional_id}"
        doomed.await_line(line, lambda said, line=line: said == line)  # type: ignore[misc]
    before = {name: made.committed_offset() for name, made in producers.items()}
    doomed.kill()
    return {name: Fate(made, before[name]) for name, made in producers.items()}


@pytest.fixture(scope="module")
def stage(
    broker: EmbeddedBroker, coordinator: CoordinatorProcess, topic: str, fates: dict[str, Fate]
) -> Iterator[Stage]:
    """The gateways start when the doomed one is dead, so that none of them could help it."""
    prefix = coordinator.topics.prefix
    gateways = [Gateway(name, broker.bootstrap_servers, prefix) for name in ("first", "second")]
    try:
        for gateway in gateways:
            gateway.start()
        for fate in fates.values():
            fate.producer.go_to(gateways[0].port)
        yield Stage(broker, coordinator, gateways[0], gateways[1], topic)
    finally:
        for gateway in gateways:
            gateway.kill()


def settled_offset(producer: RawProducer) -> int | str:
    """The offset when it is pending no more."""
    wait_until(lambda: producer.committed_offset() != UNSTABLE, "the transaction is settled", LIMIT_SECONDS)
    return producer.committed_offset()


# ---- a gateway is killed -----------------------------------------------------------------------------------------


def test_offsets_are_pending_until_the_group_knows_the_end(fates: dict[str, Fate]) -> None:
    before = {name: fate.offset_before for name, fate in fates.items()}
    assert before.pop("adding") == -1
    assert (before.pop("told"), before.pop("told-abort")) == (5, -1)
    assert set(before.values()) == {UNSTABLE}


def test_with_the_intention_written_the_producer_can_end_it_through_another_gateway(
    stage: Stage, fates: dict[str, Fate]
) -> None:
    for name, committed, offset in (("retried", True, 5), ("retried-abort", False, -1)):
        producer = fates[name].producer
        assert producer.committed_offset() == UNSTABLE
        assert producer.end(committed) is ErrorCode.none
        assert producer.committed_offset() == offset


def test_with_the_intention_written_a_producer_that_begins_anew_aborts_it(stage: Stage, fates: dict[str, Fate]) -> None:
    producer = fates["restarted"].producer
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1


def test_with_the_intention_written_it_is_aborted_when_the_broker_gives_it_up(
    stage: Stage, fates: dict[str, Fate]
) -> None:
    assert settled_offset(fates["abandoned"].producer) == -1


def test_what_the_broker_has_ended_is_settled_without_the_producer(stage: Stage, fates: dict[str, Fate]) -> None:
    assert settled_offset(fates["committed"].producer) == 5
    assert settled_offset(fates["aborted"].producer) == -1


def test_what_the_broker_has_committed_survives_that_the_producer_begins_anew(
    stage: Stage, fates: dict[str, Fate]
) -> None:
    producer = fates["committed-restarted"].producer
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == 5
    producer.begin(6)
    assert producer.end(committed=False) is ErrorCode.none
    assert producer.committed_offset() == 5


def test_when_only_the_answer_was_lost_the_producer_asks_again_and_goes_on(
    stage: Stage, fates: dict[str, Fate]
) -> None:
    producer = fates["told"].producer
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 5
    producer.begin(7)
    assert producer.committed_offset() == UNSTABLE
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 7


def test_a_group_that_only_the_broker_has_taken_into_the_transaction_is_added_again(
    stage: Stage, fates: dict[str, Fate]
) -> None:
    producer = fates["adding"].producer
    producer.begin(3)
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 3


# ---- gateways that live ------------------------------------------------------------------------------------------


def test_every_request_of_a_transaction_may_take_another_gateway(stage: Stage) -> None:
    producer = stage.producer()
    for offset, committed in ((1, True), (2, False), (3, True)):
        producer.go_to(stage.first.port)
        assert producer.add_offsets() is ErrorCode.none
        producer.go_to(stage.second.port)
        assert producer.commit_offset(offset) is ErrorCode.none
        assert producer.committed_offset(stage.first.port) == UNSTABLE
        producer.go_to(stage.first.port if offset == 2 else stage.second.port)
        assert producer.end(committed) is ErrorCode.none
        assert producer.committed_offset(stage.first.port) == (3 if offset == 3 else 1)


def test_what_takes_too_long_is_aborted(stage: Stage) -> None:
    producer = stage.producer(timeout_ms=SHORT_MS)
    producer.begin(1)
    assert producer.committed_offset() == UNSTABLE
    assert producer.committed_offset(require_stable=False) == -1
    assert settled_offset(producer) == -1
    assert producer.end(committed=True) in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch)


def test_a_producer_that_begins_anew_in_the_middle_aborts_what_it_began(stage: Stage) -> None:
    producer = stage.producer()
    producer.begin(1)
    old_epoch = producer.producer_epoch
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1
    assert producer.producer_epoch > old_epoch
    producer.begin(2)
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 2


def test_offsets_outside_of_a_transaction_are_refused_as_a_broker_refuses_them(stage: Stage) -> None:
    def refused(producer: RawProducer) -> tuple[ErrorCode, ErrorCode]:
        with WireClient(int(stage.broker.bootstrap_servers.rpartition(":")[2])) as broker:
            find_coordinator(broker, producer.group_id, GROUP)
            return producer.commit_offset(1), producer.commit_offset_at(broker, 1)

    producer = stage.producer()
    ours, brokers = refused(producer)
    assert ours is brokers is ErrorCode.invalid_txn_state
    zombie = RawProducer(producer.port, producer.transactional_id, producer.group_id, stage.topic)
    zombie.producer_id, zombie.producer_epoch = producer.producer_id, producer.producer_epoch
    assert producer.init() is ErrorCode.none
    producer.begin(1)
    ours, brokers = refused(zombie)
    assert ours is brokers is ErrorCode.invalid_producer_epoch
    zombie.producer_id = type(zombie.producer_id)(987_654)
    ours, brokers = refused(zombie)
    assert ours is brokers is ErrorCode.invalid_producer_id_mapping
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 1
    # Between two transactions, too.
    assert producer.commit_offset(9) is ErrorCode.invalid_txn_state


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_the_requests_is_served(stage: Stage, version: int) -> None:
    producer = stage.producer()
    assert producer.init(version) is ErrorCode.none
    assert producer.add_offsets(version) is ErrorCode.none
    assert producer.commit_offset(version, version) is ErrorCode.none
    assert producer.end(True, version) is ErrorCode.none
    assert producer.committed_offset() == version


def test_a_transaction_can_have_several_groups_and_partitions_of_topics(stage: Stage) -> None:
    one = stage.producer()
    other = RawProducer(one.port, one.transactional_id, unique("group"), stage.topic)
    other.producer_id, other.producer_epoch = one.producer_id, one.producer_epoch
    one.begin(1)
    other.begin(2)
    assert (one.committed_offset(), other.committed_offset()) == (UNSTABLE, UNSTABLE)
    assert one.end(committed=True) is ErrorCode.none
    assert (one.committed_offset(), other.committed_offset()) == (1, 2)


# ---- a client as users have it -----------------------------------------------------------------------------------


def test_consume_transform_produce_is_exactly_once(stage: Stage) -> None:
    output = unique("output")
    create_topic(stage.broker.bootstrap_servers, output, 1)
    reading = {"bootstrap.servers": stage.first.address, "isolation.level": "read_committed"}
    consumer = Consumer(
        {**reading, "group.id": unique("loop"), "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    producer = Producer({"bootstrap.servers": stage.second.address, "transactional.id": unique("loop"), "linger.ms": 0})
    try:
        producer.init_transactions(LIMIT_SECONDS)
        consumer.subscribe([stage.topic])
        aborted = set[int]()
        done = 0
        while done < RECORDS:
            (message,) = consumer.consume(1, LIMIT_SECONDS)
            assert (message.error(), message.offset()) == (None, done)
            producer.begin_transaction()
            producer.produce(output, message.value(), partition=0)
            position = TopicPartition(stage.topic, 0, done + 1)
            producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), LIMIT_SECONDS)
            if done % 4 == 2 and done not in aborted:
                aborted.add(done)
                producer.abort_transaction(LIMIT_SECONDS)
                consumer.seek(TopicPartition(stage.topic, 0, done))
            else:
                producer.commit_transaction(LIMIT_SECONDS)
                done += 1
            (committed,) = consumer.committed([TopicPartition(stage.topic, 0)], LIMIT_SECONDS)
            assert committed.offset == (done or OFFSET_INVALID)
    finally:
        consumer.close()
    values = consume_all(stage.first.address, output, RECORDS, **{"isolation.level": "read_committed"})
    assert values == [b"%d" % number for number in range(RECORDS)]


def test_transactions_without_offsets_need_no_coordinator_of_groups(stage: Stage) -> None:
    output = unique("output")
    create_topic(stage.broker.bootstrap_servers, output, 1)
    gateway = Gateway("early", stage.broker.bootstrap_servers, unique("nothing") + "-")
    try:
        gateway.start()
        producer = Producer({"bootstrap.servers": gateway.address, "transactional.id": unique("early")})
        producer.init_transactions(LIMIT_SECONDS)
        producer.begin_transaction()
        producer.produce(output, b"one", partition=0)
        producer.commit_transaction(LIMIT_SECONDS)
        assert consume_all(gateway.address, output, 1, **{"isolation.level": "read_committed"}) == [b"one"]
    finally:
        gateway.kill()
