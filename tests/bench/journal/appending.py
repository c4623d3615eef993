"""Appends many records as fast as the broker takes them."""

from collections.abc import Iterable, Mapping

from confluent_kafka import Producer

LIMIT_SECONDS = 900.0

Record = tuple[str, bytes, bytes]
"""A topic, a key and a value."""


def append_all(bootstrap_servers: str, records: Iterable[Record], settings: Mapping[str, str | int | bool]) -> int:
    """Append the records, and return how many there were. ``settings`` are librdkafka's."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50, **settings})
    count = 0
    for topic, key, value in records:
        count += 1
        while True:
            try:
                producer.produce(topic, key=key, value=value)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(LIMIT_SECONDS) == 0
    return count
