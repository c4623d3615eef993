"""Records that keep coming while groups consume."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.clients.group import WatchedGroup
from tests.support.background_loop import BackgroundLoop

PRODUCE_EVERY_SECONDS = 0.5
LOG_ERRORS = 2


@contextmanager
def producing(bootstrap_servers: str, groups: Collection[WatchedGroup]) -> Iterator[None]:
    """Produce to all partitions of all topics with an idempotent producer while the block runs."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": LOG_ERRORS})

    def produce() -> None:
        for group in groups:
            for partition in range(group.partitions):
                producer.produce(group.topic, b"a record", partition=partition)
        producer.poll(0)

    loop = BackgroundLoop(produce, PRODUCE_EVERY_SECONDS)
    try:
        yield
    finally:
        loop.end()
        assert producer.flush(60) == 0
    assert loop.failure is None
