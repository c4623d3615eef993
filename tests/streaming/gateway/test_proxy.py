import os
import uuid

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.broker import EmbeddedBroker
from tests.streaming.gateway.in_process import RunningGateway

LIMIT_SECONDS = 30


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = f"gateway-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_SECONDS)
    return name


def consume(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False})
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


def test_what_is_produced_through_the_gateway_is_consumed_through_it(gateway: RunningGateway, topic: str) -> None:
    values = [os.urandom(100_000) for _ in range(200)]
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(LIMIT_SECONDS) == 0
    assert consume(gateway.bootstrap_servers, topic, len(values)) == values
