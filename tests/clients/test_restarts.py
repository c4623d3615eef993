"""Coordinator and gateway are restarted, killed and doubled under groups of every client library."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.clients.conftest import NewGroup
from tests.clients.group import WatchedGroup
from tests.clients.libraries import Library
from tests.clients.system import GatewayProcess, System

PARTITIONS = 2
SESSION_MS = 30_000
"""More than a restart takes, also on a busy machine."""

NAMES = ("a", "b")
KINDS = [
    (Library.JAVA, "range", False),
    (Library.JAVA, "cooperative-sticky", True),
    (Library.LIBRDKAFKA, "range", True),
    (Library.LIBRDKAFKA, "cooperative-sticky", False),
    (Library.KAFKA_PYTHON, "range", False),
    (Library.KAFKA_PYTHON, "cooperative-sticky", True),
    (Library.AIOKAFKA, "range", True),
    (Library.AIOKAFKA, "roundrobin", False),
]
"""Library, assignor, whether the members are static."""

PRODUCE_EVERY_SECONDS = 0.1


@contextmanager
def producing(bootstrap_servers: str, groups: list[WatchedGroup]) -> Iterator[None]:
    """Produce to all partitions of all topics, a record at a time, without losing or doubling any."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(PRODUCE_EVERY_SECONDS):
            for group in groups:
                for partition in range(group.partitions):
                    producer.produce(group.topic, b"a record", partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(60) == 0


def test_no_member_of_any_client_notices_restarts(system: System, new_group: NewGroup) -> None:
    groups = []
    for library, assignor, is_static in KINDS:
        group = new_group(PARTITIONS, assignor=assignor, session_ms=SESSION_MS)
        for name in NAMES:
            group.start(name, library, f"instance-{name}" if is_static else None)
        groups.append(group)
    for group in groups:
        group.await_shared_by(*NAMES)
    before = [group.rebalances for group in groups]

    with producing(system.bootstrap_servers, groups):
        await_all(groups)
        system.coordinator.kill()
        system.coordinator.start()
        await_unbothered(groups, before)
        system.gateway.kill()
        system.gateway.start()
        await_unbothered(groups, before)
        system.gateway.end()
        system.coordinator.stop()
        system.start()
        await_unbothered(groups, before)

    ends = [system.end_offsets(group.topic, PARTITIONS) for group in groups]
    for group, end in zip(groups, ends, strict=True):
        group.await_consumed(end)
        group.end(*NAMES)
        group.check_everything_consumed(end)
        group.check_ownership()
        assert system.committed(group.group_id, group.topic) == end


def test_clients_of_a_gateway_that_is_killed_go_to_another_one(system: System, new_group: NewGroup) -> None:
    other = GatewayProcess(system.coordinator)
    both = f"{system.bootstrap_servers},{other.bootstrap_servers}"
    try:
        other.start()
        groups = []
        for library in (Library.JAVA, Library.LIBRDKAFKA, Library.KAFKA_PYTHON):
            group = new_group(PARTITIONS, session_ms=SESSION_MS, bootstrap_servers=both)
            for name in NAMES:
                group.start(name, library)
            groups.append(group)
        for group in groups:
            group.await_shared_by(*NAMES)
        before = [group.rebalances for group in groups]

        # Wherever a client was, it has to move once.
        with producing(system.broker.bootstrap_servers, groups):
            system.gateway.kill()
            await_unbothered(groups, before)
            system.gateway.start()
            other.kill()
            await_unbothered(groups, before)
    finally:
        other.kill()


def await_all(groups: list[WatchedGroup]) -> None:
    """Wait until every member has consumed more."""
    for group in groups:
        group.await_consumption(*NAMES)


def await_unbothered(groups: list[WatchedGroup], rebalances: list[int]) -> None:
    """Wait until every member has consumed more, and see that none was told of another assignment."""
    await_all(groups)
    for group, before in zip(groups, rebalances, strict=True):
        assert group.rebalances == before, group.describe()
