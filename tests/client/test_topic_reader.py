"""The thread that reads a topic survives whatever prevents it from reading."""

import threading

from confluent_kafka import Consumer

from streaming.client.topic_reader import TopicReader
from tests.support.waiting import LIMIT_SECONDS

NOBODY_LISTENS = "127.0.0.1:1"


def test_a_reader_retries_after_any_exception_and_reports_it() -> None:
    reads = threading.Semaphore(0)
    failures: list[None] = []

    def read(_consumer: Consumer) -> None:
        reads.release()
        raise ValueError("a defect")

    reader = TopicReader(NOBODY_LISTENS, "orders", "reader", {}, read, lambda: failures.append(None))
    reader.start()
    try:
        assert reads.acquire(timeout=LIMIT_SECONDS)
        assert reads.acquire(timeout=LIMIT_SECONDS)
        assert len(failures) >= 1
        assert reader.is_alive()
    finally:
        reader.close()


def test_a_reader_survives_that_no_consumer_can_be_made() -> None:
    failed = threading.Semaphore(0)

    def read(_consumer: Consumer) -> None:
        raise AssertionError("there is no consumer to read with")

    # At run time, librdkafka refuses a consumer when the process may start no more threads.
    reader = TopicReader(NOBODY_LISTENS, "orders", "reader", {"no.such.property": 1}, read, failed.release)
    reader.start()
    try:
        assert failed.acquire(timeout=LIMIT_SECONDS)
        assert failed.acquire(timeout=LIMIT_SECONDS)
        assert reader.is_alive()
    finally:
        reader.close()
