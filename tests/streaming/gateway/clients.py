"""Clients of librdkafka, as users have them."""

from collections.abc import Sequence

from confluent_kafka import Consumer, Message, Producer, TopicPartition

LIMIT_SECONDS = 60


def produce_all(bootstrap_servers: str, topic: str, values: Sequence[bytes], **config: object) -> None:
    """Produce to partition 0 and wait until all is delivered."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, **config})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(LIMIT_SECONDS) == 0
    assert not any(failures)


def consume_all(bootstrap_servers: str, topic: str, count: int, **config: object) -> list[bytes]:
    """The first records of partition 0, without any group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False, **config}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages: list[Message] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), LIMIT_SECONDS)
            assert batch, f"only {len(messages)} of {count} records came"
            messages += batch
        assert not any(message.error() for message in messages)
        return [message.value() or b"" for message in messages]
    finally:
        consumer.close()
