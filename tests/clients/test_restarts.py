"""Coordinator and gateway are restarted, killed and doubled under groups of every client library."""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Producer

from tests.clients.conftest import NewGroup
from tests.clients.group import WatchedGroup
from tests.clients.libraries import Library
from tests.clients.system import GatewayProcess, System

PARTITIONS = 2
SESSION_MS = 120_000
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
LOG_ERRORS = 2


@contextmanager
def producing(bootstrap_servers: str, groups: Collection[WatchedGroup]) -> Iterator[None]:
    """Produce to all partitions of all topics, a record at a time, without losing or doubling any."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": LOG_ERRORS})
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


class Standing(NamedTuple):
    """Where a group stood before something was restarted."""

    group: WatchedGroup
    library: Library
    rebalances: int
    owned: dict[str, set[int]]

    def is_owned_as_before(self) -> bool:
        """Whether every partition has its owner of then."""
        return self.group.owned == self.owned


def await_shared(groups: Mapping[WatchedGroup, Library]) -> list[Standing]:
    """Wait until the members of each group share its partitions; how the groups stand then."""
    for group in groups:
        group.await_shared_by(*NAMES)
    return [Standing(group, library, group.rebalances, group.owned) for group, library in groups.items()]


def counted_anew(standings: list[Standing]) -> list[Standing]:
    """The same with the rebalances until now. What members own stays that of the beginning: one of Java's may be
    joining again just now."""
    return [standing._replace(rebalances=standing.group.rebalances) for standing in standings]


def await_consumption(groups: Iterable[WatchedGroup]) -> None:
    """Wait until every member has consumed more."""
    for group in groups:
        group.await_consumption(*NAMES)


def await_unbothered(before: list[Standing], gateway_was_away: bool = False) -> None:
    """Wait until every member has consumed more; nobody may have joined again, or own something else.

    Java's clients forget all topics when there is no broker they can connect to (KIP-899), and a leader that learns of
    its topics again joins again. As members keep their ids, they keep their partitions.
    """
    await_consumption(standing.group for standing in before)
    for standing in before:
        group = standing.group
        if gateway_was_away and standing.library is Library.JAVA:
            group.wait_until("the owners of before", standing.is_owned_as_before)
        else:
            assert group.rebalances == standing.rebalances, group.describe()


def test_no_member_of_any_client_is_lost_by_restarts(system: System, new_group: NewGroup) -> None:
    groups = {}
    for library, assignor, is_static in KINDS:
        group = new_group(PARTITIONS, assignor=assignor, session_ms=SESSION_MS)
        for name in NAMES:
            group.start(name, library, f"instance-{name}" if is_static else None)
        groups[group] = library
    before = await_shared(groups)

    with producing(system.bootstrap_servers, groups):
        await_consumption(groups)
        before = counted_anew(before)
        system.coordinator.kill()
        system.coordinator.start()
        await_unbothered(before)

        before = counted_anew(before)
        system.gateway.kill()
        system.gateway.start()
        await_unbothered(before, gateway_was_away=True)

        before = counted_anew(before)
        system.gateway.end()
        system.coordinator.stop()
        system.start()
        await_unbothered(before, gateway_was_away=True)

    for group in groups:
        ends = system.end_offsets(group.topic, PARTITIONS)
        group.await_consumed(ends)
        group.end(*NAMES)
        group.check_everything_consumed(ends)
        group.check_ownership()
        assert system.committed(group.group_id, group.topic) == ends


def test_clients_of_a_gateway_that_is_killed_go_to_another_one(system: System, new_group: NewGroup) -> None:
    """Of clients that go back to their bootstrap addresses; kafka-python and aiokafka do not."""
    other = GatewayProcess(system.coordinator)
    both = f"{system.bootstrap_servers},{other.bootstrap_servers}"
    try:
        other.start()
        groups = {}
        for library in (Library.JAVA, Library.LIBRDKAFKA):
            group = new_group(PARTITIONS, session_ms=SESSION_MS, bootstrap_servers=both)
            for name in NAMES:
                group.start(name, library)
            groups[group] = library
        before = await_shared(groups)

        # Wherever a client was, it has to move once.
        with producing(system.broker.bootstrap_servers, groups):
            await_consumption(groups)
            before = counted_anew(before)
            system.gateway.kill()
            await_unbothered(before, gateway_was_away=True)
            system.gateway.start()
            before = counted_anew(before)
            other.kill()
            await_unbothered(before, gateway_was_away=True)
    finally:
        other.kill()
        if not system.gateway.is_running:
            system.gateway.start()
