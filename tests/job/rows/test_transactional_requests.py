"""Requests that a producer appends in a transaction of its own: carried out with its commit, and never if it aborts."""

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from streaming.journal.reader import journal_entries
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append
from tests.support.request_events import commit, dumped
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

PARTITION = 0


@pytest.fixture
def producer(coordinator: CoordinatorProcess) -> Iterator[Producer]:
    """A transactional producer; what it has left open is aborted."""
    settings = {"bootstrap.servers": coordinator.bootstrap_servers, "transactional.id": unique("requests")}
    producer = Producer(settings)
    producer.init_transactions(LIMIT_SECONDS)
    yield producer
    Producer(settings).init_transactions(LIMIT_SECONDS)


def committed(coordinator: CoordinatorProcess, group_id: str) -> list[int]:
    """The offsets that the journal says were committed for the group, in order."""
    entries = journal_entries({"bootstrap.servers": coordinator.bootstrap_servers}, coordinator.topics.journal, 60.0)
    records = [entry.record for entry in entries if entry is not None and entry.group_id == group_id]
    return [one.offset for record in records for one in getattr(record, "offsets", [])]


def await_all_read(coordinator: CoordinatorProcess) -> None:
    """Wait until the job's health page says that no request waits."""
    prefix = "serving metrics at port "
    port = next(line.partition(prefix)[2].split()[0].rstrip('",}') for line in coordinator.output if prefix in line)

    def are_read() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=10) as answer:
            return "all requests are read" in answer.read().decode()

    wait_until(are_read, "all requests are read", LIMIT_SECONDS)


def test_a_request_counts_if_its_transaction_is_committed_and_never_if_it_is_aborted(
    coordinator: CoordinatorProcess, producer: Producer
) -> None:
    group_id, topic = unique("group"), coordinator.topics.requests

    def send_in_transaction(offset: int) -> None:
        producer.begin_transaction()
        value = dumped(commit(group_id, offset))
        producer.produce(topic, key=group_id.encode(), value=value, partition=PARTITION)
        assert producer.flush(LIMIT_SECONDS) == 0

    send_in_transaction(1)
    producer.abort_transaction(LIMIT_SECONDS)
    send_in_transaction(2)
    # It waits behind the open transaction.
    append(coordinator.bootstrap_servers, topic, (group_id.encode(), dumped(commit(group_id, 3))), partition=PARTITION)
    await_all_read(coordinator)
    assert committed(coordinator, group_id) == []
    producer.commit_transaction(LIMIT_SECONDS)
    wait_until(lambda: 3 in committed(coordinator, group_id), "the last commit is in the journal", LIMIT_SECONDS)
    assert committed(coordinator, group_id) == [2, 3]
    # A log that ends with an aborted request and its marker is read to its end.
    send_in_transaction(4)
    producer.abort_transaction(LIMIT_SECONDS)
    await_all_read(coordinator)
    append(coordinator.bootstrap_servers, topic, (group_id.encode(), dumped(commit(group_id, 5))), partition=PARTITION)
    wait_until(lambda: 5 in committed(coordinator, group_id), "the commit is in the journal", LIMIT_SECONDS)
    assert committed(coordinator, group_id) == [2, 3, 5]
