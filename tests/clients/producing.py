"""Records that keep coming while groups consume."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.clients.group import WatchedGroup

PRODUCE_EVERY_SECONDS = 0.1
LOG_ERRORS = 2


@contextmanager
def producing(bootstrap_servers: str, groups: Collection[WatchedGroup]) -> Iterator[None]:
    """Produce to all partitions of all topics with an idempotent producer while the block runs."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": LOG_ERRORS})
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(PRODUCE_EVERY_SECONDS):
            for group in groups:
                for partition in range(group.partitions):
                    producer.produce(group.topic, b"a record", partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(60) == 0
