"""A producer that is stuck is replaced: on a real broker, whose answers to one connection are kept from it."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from streaming.client.librdkafka import producer_config
from streaming.client.restarting_producer import RestartingProducer
from streaming.embedded.broker import EmbeddedBroker
from tests.support.kafka_io import consume_all
from tests.support.relay.dropping_relay import END_TRANSACTION, INIT_PRODUCER_ID, PRODUCE, DroppingRelay, relayed_broker
from tests.support.topics import create_topic, unique
from tests.support.waiting import wait_until

pytestmark = pytest.mark.jvm

LOOK_SECONDS = 1.0


@pytest.fixture(scope="module")
def relayed() -> Iterator[tuple[EmbeddedBroker, DroppingRelay, str]]:
    with relayed_broker() as started:
        yield started


class Deliveries:
    """A producer, and the outcomes of its records by their values; None for a record that was acknowledged."""

    def __init__(self, address: str, topic: str, message_timeout_ms: int = 0) -> None:
        self.topic = topic
        self.outcomes: dict[bytes, int | None] = {}
        settings = producer_config(address, "test", {"message.timeout.ms": message_timeout_ms, "log_level": 0})
        self.producer = RestartingProducer(settings, pause_seconds=60.0, look_seconds=LOOK_SECONDS)

    def send(self, value: bytes) -> None:
        def settled(error: KafkaError | None, _record: Message) -> None:
            self.outcomes[value] = None if error is None else error.code()

        self.producer.produce(self.topic, b"key", value, 0, settled)

    def await_outcome(self, value: bytes) -> None:
        def is_settled() -> bool:
            self.producer.poll(0.05)
            return value in self.outcomes

        wait_until(is_settled, f"{value!r} settled", pause=0.0)


@pytest.fixture
def deliveries(relayed: tuple[EmbeddedBroker, DroppingRelay, str]) -> Deliveries:
    """Those of a producer whose first record was acknowledged."""
    broker, _, address = relayed
    topic = unique("stuck")
    create_topic(broker.bootstrap_servers, topic)
    begun = Deliveries(address, topic)
    begun.send(b"before")
    begun.await_outcome(b"before")
    return begun


def test_a_producer_without_an_acknowledgement_is_replaced_while_the_brokers_answer(
    relayed: tuple[EmbeddedBroker, DroppingRelay, str], deliveries: Deliveries
) -> None:
    broker, relay, _ = relayed
    relay.drop(PRODUCE, until=INIT_PRODUCER_ID)
    deliveries.send(b"stuck")
    deliveries.await_outcome(b"stuck")
    assert deliveries.outcomes == {b"before": None, b"stuck": KafkaError._PURGE_INFLIGHT}

    deliveries.producer.poll()
    assert deliveries.producer.failure is None
    deliveries.send(b"after")
    deliveries.await_outcome(b"after")
    assert deliveries.outcomes[b"after"] is None
    assert consume_all(broker.bootstrap_servers, deliveries.topic, 2) == [b"before", b"after"]


def test_a_producer_whose_records_time_out_is_replaced_while_the_brokers_answer(
    relayed: tuple[EmbeddedBroker, DroppingRelay, str], deliveries: Deliveries
) -> None:
    _, relay, address = relayed
    # Without a producer id nothing is sent. No producer here sends the other request.
    relay.drop(INIT_PRODUCER_ID, until=END_TRANSACTION)
    impatient = Deliveries(address, deliveries.topic, message_timeout_ms=round(LOOK_SECONDS * 1000 / 4))
    sent = 0

    def send_next() -> int | None:
        nonlocal sent
        sent += 1
        value = str(sent).encode()
        impatient.send(value)
        impatient.await_outcome(value)
        return impatient.outcomes[value]

    # Until now records timed out; those of a producer that is given up are removed from its queue.
    wait_until(lambda: send_next() == KafkaError._PURGE_QUEUE, "the producer is given up", ignore=(KafkaException,))
    assert impatient.outcomes[b"1"] == KafkaError._MSG_TIMED_OUT
    relay.pass_all()
    wait_until(lambda: send_next() is None, "a record is acknowledged", ignore=(KafkaException,))


def test_a_producer_is_kept_while_no_broker_answers(
    relayed: tuple[EmbeddedBroker, DroppingRelay, str], deliveries: Deliveries
) -> None:
    _, relay, _ = relayed
    with relay.holding():
        deliveries.send(b"kept")
        looks_passed = time.monotonic() + 6 * LOOK_SECONDS
        while time.monotonic() < looks_passed:
            deliveries.producer.poll(0.05)
        assert deliveries.producer.failure is None
    deliveries.await_outcome(b"kept")
    assert deliveries.outcomes == {b"before": None, b"kept": None}
