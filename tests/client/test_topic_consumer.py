"""A topic that is read to its end: all of it, a part, and with a transaction that does not end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Message, Producer

from streaming.client.errors import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.topic_consumer import TopicConsumer
from streaming.embedded.broker import EmbeddedBroker
from tests.support.kafka_io import append
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

SHORT_SECONDS = 1.0

Opens = Callable[..., TopicConsumer]


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = unique("read")
    create_topic(broker.bootstrap_servers, name, 3, {})
    return name


@pytest.fixture
def opened(broker: EmbeddedBroker, topic: str) -> Iterator[Opens]:
    """Opens consumers of the topic; called with their limit in seconds."""
    with ExitStack() as stack:

        def opens(timeout: float = LIMIT_SECONDS) -> TopicConsumer:
            return stack.enter_context(TopicConsumer(broker.bootstrap_servers, topic, "reader", {}, timeout))

        yield opens


def values(records: Iterator[Message]) -> list[bytes]:
    return sorted(bytes(record.value() or b"") for record in records)


def test_all_partitions_are_read_to_their_ends_also_those_without_a_record(
    broker: EmbeddedBroker, topic: str, opened: Opens
) -> None:
    append(broker.bootstrap_servers, topic, (b"a", b"1"), (b"a", b"2"), partition=0)
    append(broker.bootstrap_servers, topic, (b"a", b"3"), partition=2)
    consumer, counts = opened(), list[int]()
    consumer.assign(dict.fromkeys(consumer.partitions, 0))
    assert values(consumer.read_to_end(on_read=counts.append)) == [b"1", b"2", b"3"]
    assert sum(counts) >= 3
    assert consumer.ends(consumer.partitions) == {0: 2, 1: 0, 2: 1}
    append(broker.bootstrap_servers, topic, (b"a", b"4"), partition=1)
    further = (record for record in consumer.follow(0.1) if record is not None)
    assert next(further).value() == b"4"


def test_a_reading_stops_at_the_ends_that_it_is_given_and_a_new_consumer_goes_on_there(
    broker: EmbeddedBroker, topic: str, opened: Opens
) -> None:
    append(broker.bootstrap_servers, topic, (b"a", b"1"), (b"a", b"2"), partition=0)
    consumer = opened()
    consumer.assign({0: 0})
    assert values(consumer.read_to_end(consumer.ends([0]))) == [b"1", b"2"]
    assert values(consumer.read_to_end(consumer.ends([0]), SHORT_SECONDS)) == []
    append(broker.bootstrap_servers, topic, (b"a", b"3"), partition=0)
    consumer.renew()
    assert values(consumer.read_to_end(consumer.ends([0]))) == [b"3"]


def test_a_partition_that_is_left_is_read_no_further(broker: EmbeddedBroker, topic: str, opened: Opens) -> None:
    append(broker.bootstrap_servers, topic, (b"a", b"1"), (b"a", b"2"), partition=0)
    consumer, first = opened(), list[bytes | None]()
    consumer.assign({0: 0, 1: 0})
    for record in consumer.read_to_end():
        if not first:
            first.append(record.value())
            consumer.leave(0)
    assert first == [b"1"]


def test_the_offsets_of_a_time_are_those_of_its_first_records_or_the_ends(
    broker: EmbeddedBroker, topic: str, opened: Opens
) -> None:
    append(broker.bootstrap_servers, topic, (b"a", b"1"), (b"a", b"2"), partition=0)
    consumer = opened()
    assert consumer.offsets_at({0: 1, 1: 1}) == {0: 0, 1: 0}
    assert consumer.offsets_at({0: 2**52}) == {0: 2}
    assert consumer.offsets_at({}) == {}
    assert consumer.beginnings([0]) == {0: 0}


def test_a_transaction_that_does_not_end_ends_the_topic_before_it(
    broker: EmbeddedBroker, topic: str, opened: Opens
) -> None:
    append(broker.bootstrap_servers, topic, (b"a", b"1"), partition=0)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(LIMIT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"2", partition=0)
    assert producer.flush(LIMIT_SECONDS) == 0
    consumer = opened()
    consumer.assign({0: 0})
    ends = consumer.ends([0])
    assert ends == {0: 1}
    assert values(consumer.read_to_end(ends)) == [b"1"]
    producer.abort_transaction(LIMIT_SECONDS)
    # The record and the marker of the transaction.
    assert values(consumer.read_to_end({0: 3})) == []
    assert consumer.positions == {0: 3}


def test_a_topic_that_ends_earlier_than_expected_and_one_that_does_not_exist_are_errors(
    broker: EmbeddedBroker, opened: Opens
) -> None:
    consumer = opened(SHORT_SECONDS)
    consumer.assign({0: 0})
    with pytest.raises(RequestTimedOut, match="could not be read to its end: nothing came for 1 s"):
        list(consumer.read_to_end({0: 1}))
    with pytest.raises(RequestTimedOut, match=r"could not be read to its end within 0\.5 s"):
        list(consumer.read_to_end({0: 1}, within=0.5))
    with pytest.raises(CoordinatorNotAvailable, match="does not exist"):
        TopicConsumer(broker.bootstrap_servers, unique("absent"), "reader", {}, LIMIT_SECONDS)
