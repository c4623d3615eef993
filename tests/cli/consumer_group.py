"""A consumer group of one member, through a gateway."""

from confluent_kafka import Consumer

from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS

READY = "gateway: ready"


def gateway_address(ready_line: str) -> str:
    """The address in the line with which the gateway reports that it is ready."""
    return ready_line.partition("clients connect to ")[2].partition(";")[0]


def consume_and_commit(gateway: str) -> None:
    """Join a group at the gateway, consume two records, and commit. Fails if one of these does."""
    create_topic(gateway, "t")
    produce_all(gateway, "t", [b"one", b"two"])
    consumer = Consumer({"bootstrap.servers": gateway, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        assert [message.value() for message in consumer.consume(2, LIMIT_SECONDS)] == [b"one", b"two"]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
