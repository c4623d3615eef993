"""A consumer that waits at the brokers sees requests arrive."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Message, Producer

from streaming.contract.topics import CAN_WAIT
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.pace.arrivals import Arrivals
from tests.support.kafka_io import append
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

MANY = 200

ROUNDS = 100
UNSEEN_SECONDS = 3.0


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = unique("requests")
    create_topic(broker.bootstrap_servers, name, partitions=2)
    return name


@pytest.fixture
def arrivals(broker: EmbeddedBroker, topic: str) -> Iterator[Arrivals]:
    append(broker.bootstrap_servers, topic, (b"group", b"before"), partition=0)
    with closing(Arrivals({"bootstrap.servers": broker.bootstrap_servers}, topic, 2)) as seeing:
        yield seeing


@pytest.fixture
def in_transaction(broker: EmbeddedBroker, topic: str) -> Iterator[Callable[[bytes], Producer]]:
    """Appends a record in a transaction, which stays open."""
    with ExitStack() as stack:

        def begin(value: bytes) -> Producer:
            settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
            producer = Producer(settings)
            producer.init_transactions(LIMIT_SECONDS)
            producer.begin_transaction()
            producer.produce(topic, value, b"group", 0)
            assert producer.flush(LIMIT_SECONDS) == 0
            stack.callback(lambda: Producer(settings).init_transactions(LIMIT_SECONDS))
            return producer

        yield begin


def seen(arrivals: Arrivals) -> bytes:
    record = arrivals.next(LIMIT_SECONDS)
    assert isinstance(record, Message)
    assert record.error() is None
    value = record.value()
    assert isinstance(value, bytes)
    return value


def test_what_is_appended_from_now_on_is_seen(broker: EmbeddedBroker, topic: str, arrivals: Arrivals) -> None:
    for partition in (0, 1):
        append(broker.bootstrap_servers, topic, (b"group", b"%d" % partition), partition=partition)
        assert seen(arrivals) == b"%d" % partition


def test_a_request_is_seen_while_the_other_partition_is_idle(
    broker: EmbeddedBroker, topic: str, arrivals: Arrivals
) -> None:
    """A fetch that does not name the partition of a request must not wait long for one in the other partition.

    With fetches that waited for 10 s, and one queued request that kept its partition out of them, the first 20 rounds
    had one in which no request was seen.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    for number in range(ROUNDS):
        for _ in range(3):
            producer.produce(topic, b"%d" % number, b"group", 0)
            assert producer.flush(LIMIT_SECONDS) == 0
        assert arrivals.next(UNSEEN_SECONDS) is not None, number
        arrivals.skip()
        arrivals.confirm()


def test_the_header_of_a_request_that_can_wait_is_seen(broker: EmbeddedBroker, topic: str, arrivals: Arrivals) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"value", b"group", 0, headers=[(CAN_WAIT, b"")])
    assert producer.flush(LIMIT_SECONDS) == 0
    record = arrivals.next(LIMIT_SECONDS)
    assert record is not None
    assert record.headers() == [(CAN_WAIT, b"")]


def test_requests_that_are_known_to_be_there_are_passed_over(
    broker: EmbeddedBroker, topic: str, arrivals: Arrivals
) -> None:
    """However many there were, a few are seen at most: those that had been fetched when they were passed over."""
    append(broker.bootstrap_servers, topic, *[(b"group", b"%d" % number) for number in range(MANY)], partition=0)
    first = seen(arrivals)
    arrivals.skip()
    arrivals.confirm()
    append(broker.bootstrap_servers, topic, (b"group", b"next"), partition=0)
    later = []
    while (value := seen(arrivals)) != b"next":
        later.append(value)
    assert first == b"0"
    assert len(later) < MANY // 2


def test_a_request_in_an_open_transaction_is_seen_when_it_is_committed(
    broker: EmbeddedBroker, topic: str, arrivals: Arrivals, in_transaction: Callable[[bytes], Producer]
) -> None:
    append(broker.bootstrap_servers, topic, (b"group", b"before"), partition=0)
    producer = in_transaction(b"open")
    append(broker.bootstrap_servers, topic, (b"group", b"behind"), partition=0)
    assert seen(arrivals) == b"before"
    arrivals.skip()
    arrivals.confirm()
    producer.commit_transaction(LIMIT_SECONDS)
    assert seen(arrivals) == b"open"
    assert seen(arrivals) == b"behind"
