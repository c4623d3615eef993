"""The thread that lets the query look for requests, with real brokers and a clock that counts the looks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from confluent_kafka import Message, Producer

from streaming.contract.topics import CAN_WAIT
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.pace import pace_thread
from streaming.job.pace.arrivals import Arrivals
from streaming.job.pace.pace_thread import PaceThread
from tests.support.kafka_io import append
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

LONG_SECONDS = 600.0
ROUNDS = 5
CORES = 100.0


class Looks:
    """Counts the looks."""

    def __init__(self) -> None:
        self.count = 0

    def look(self) -> None:
        self.count += 1


@contextmanager
def running(
    looks: Looks, arrivals: Callable[[], Arrivals], interval_seconds: float, cores: float
) -> Iterator[PaceThread]:
    thread = PaceThread(lambda: looks, arrivals, interval_seconds, cores)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
        assert not thread.is_alive()


@contextmanager
def pacing(
    arrivals: Callable[[], Arrivals], interval_seconds: float = LONG_SECONDS, cores: float = CORES
) -> Iterator[Looks]:
    """The looks of a thread; by default, CPU time is no limit."""
    looks = Looks()
    with running(looks, arrivals, interval_seconds, cores):
        yield looks


@pytest.fixture
def arrivals(broker: EmbeddedBroker) -> partial[Arrivals]:
    topic = unique("requests")
    create_topic(broker.bootstrap_servers, topic, partitions=1)
    return partial(Arrivals, {"bootstrap.servers": broker.bootstrap_servers}, topic, 1)


@pytest.fixture(autouse=True)
def no_other_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_thread, "ANYWAY_SECONDS", LONG_SECONDS)


def append_heartbeat(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"heartbeat", b"group", 0, headers=[(CAN_WAIT, b"")])
    assert producer.flush(LIMIT_SECONDS) == 0


def test_each_request_that_somebody_waits_for_is_looked_at(broker: EmbeddedBroker, arrivals: partial[Arrivals]) -> None:
    with pacing(arrivals) as looks:
        wait_until(lambda: looks.count == 1, "the look at what was there before")
        for number in range(ROUNDS):
            append(broker.bootstrap_servers, arrivals.args[1], (b"group", b"request"), partition=0)
            wait_until(lambda: looks.count == number + 2, "a look")  # noqa: B023


def test_heartbeats_wait_for_a_request_that_cannot(broker: EmbeddedBroker, arrivals: partial[Arrivals]) -> None:
    """If heartbeats did not wait, each would have been looked at before the next record is appended."""
    topic = arrivals.args[1]
    with pacing(arrivals) as looks:
        wait_until(lambda: looks.count == 1, "the look at what was there before")
        append(broker.bootstrap_servers, topic, (b"group", b"request"), partition=0)
        wait_until(lambda: looks.count == 2, "the first batch, after which the interval begins")
        for number in range(ROUNDS):
            append_heartbeat(broker, topic)
            append_heartbeat(broker, topic)
            append(broker.bootstrap_servers, topic, (b"group", b"request"), partition=0)
            wait_until(lambda: looks.count >= number + 3, "a look")  # noqa: B023
        assert looks.count == ROUNDS + 2


def test_heartbeats_wait_for_the_end_of_the_interval(broker: EmbeddedBroker, arrivals: partial[Arrivals]) -> None:
    with pacing(arrivals, interval_seconds=0.3) as looks:
        for _ in range(ROUNDS):
            before = looks.count
            append_heartbeat(broker, arrivals.args[1])
            wait_until(lambda: looks.count > before, "a look")  # noqa: B023


def test_without_a_budget_only_the_interval_begins_batches(broker: EmbeddedBroker, arrivals: partial[Arrivals]) -> None:
    seen = []

    class Watched(Arrivals):
        def next(self, seconds: float) -> Message | None:
            record = super().next(seconds)
            seen.extend([record] if record is not None else [])
            return record

    with pacing(partial(Watched, *arrivals.args), cores=0) as looks:
        wait_until(lambda: looks.count == 1, "the look at what was there before")
        for number in range(2):
            append(broker.bootstrap_servers, arrivals.args[1], (b"group", b"request"), partition=0)
            wait_until(lambda: len(seen) == number + 1, "the request to be seen")  # noqa: B023
    assert looks.count == 2


@pytest.mark.parametrize("cores", [CORES, 0])
def test_a_batch_that_has_left_requests_is_followed_by_another(arrivals: partial[Arrivals], cores: float) -> None:
    looks = Looks()
    with running(looks, arrivals, LONG_SECONDS, cores) as thread:
        for number in range(ROUNDS):
            wait_until(lambda: looks.count == number + 1, "a look")  # noqa: B023
            thread.note_rest()
        wait_until(lambda: looks.count == ROUNDS + 1, "a look after the last batch that has left some")


def test_the_query_looks_now_and_then_although_nothing_is_seen(
    broker: EmbeddedBroker, arrivals: partial[Arrivals], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace_thread, "ANYWAY_SECONDS", 0.1)
    with pacing(arrivals) as looks:
        wait_until(lambda: looks.count >= ROUNDS, "looks")


def test_the_query_looks_although_the_end_of_the_topic_cannot_be_found(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pace_thread, "FAILURE_PAUSE_SECONDS", 0.1)
    topic = unique("later")
    with pacing(partial(Arrivals, {"bootstrap.servers": broker.bootstrap_servers}, topic, 1)) as looks:
        wait_until(lambda: looks.count >= 2, "looks")
        create_topic(broker.bootstrap_servers, topic, partitions=1)
        append(broker.bootstrap_servers, topic, (b"group", b"request"), partition=0)
    assert not caplog.records
