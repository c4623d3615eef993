"""Groups of every client library, while coordinator and gateway restart, are killed, or a second gateway runs."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from tests.cli.test_commands import run_for
from tests.clients.conftest import NewGroup
from tests.clients.group import WatchedGroup
from tests.clients.producing import producing
from tests.clients.programs.libraries import CLASSIC, CONSUMER, Library
from tests.clients.system import System
from tests.support.gateway_process import GatewayProcess

PARTITIONS = 2
SESSION_MS = 120_000
"""Longer than a restart takes, even on a busy machine."""

LONGEST_CONSUMER_SESSION_MS = 60_000
"""The longest that the coordinator allows in the consumer group protocol."""

CONSUMER_HEARTBEAT_INTERVAL_MS = 5_000
"""A broker's default. A busy machine answers later than the interval of the other tests, and librdkafka then connects
again."""

NAMES = ("a", "b")
ASSIGNED_BY_COORDINATOR = "uniform"
"""The assignor of the consumer group protocol; those of the classic one run in members."""

KINDS = [
    (Library.JAVA, "range", False),
    (Library.JAVA, "cooperative-sticky", True),
    (Library.LIBRDKAFKA, "range", True),
    (Library.LIBRDKAFKA, "cooperative-sticky", False),
    (Library.KAFKA_PYTHON, "range", False),
    (Library.KAFKA_PYTHON, "cooperative-sticky", True),
    (Library.AIOKAFKA, "range", True),
    (Library.AIOKAFKA, "roundrobin", False),
    (Library.JAVA, ASSIGNED_BY_COORDINATOR, False),
    (Library.LIBRDKAFKA, ASSIGNED_BY_COORDINATOR, True),
]
"""Library, assignor, whether the members are static."""

ONE_OF_EACH_LIBRARY = [KINDS[number] for number in (1, 4, 7, 9)]


class Snapshot(NamedTuple):
    """A group's number of rebalances and owners before a restart."""

    group: WatchedGroup
    library: Library
    rebalances: int
    owned: dict[str, set[int]]

    def has_same_owners(self) -> bool:
        """Whether every partition still has the owner of the snapshot."""
        return self.group.owned == self.owned


def await_shared(groups: Mapping[WatchedGroup, Library]) -> list[Snapshot]:
    """Wait until the members of each group own its partitions; return snapshots of the groups."""
    for group in groups:
        group.await_shared_by(*NAMES)
    return [Snapshot(group, library, group.rebalances, group.owned) for group, library in groups.items()]


def with_current_rebalances(snapshots: list[Snapshot]) -> list[Snapshot]:
    """The snapshots with the current number of rebalances.

    The owners stay those of the first snapshot: a Java member may be rejoining at the moment.
    """
    return [snapshot._replace(rebalances=snapshot.group.rebalances) for snapshot in snapshots]


def await_consumption(groups: Iterable[WatchedGroup]) -> None:
    """Wait until every member has consumed another record."""
    for group in groups:
        group.await_consumption(*NAMES)


def await_undisturbed(before: list[Snapshot], gateway_was_away: bool = False) -> None:
    """Wait until every member has consumed another record; check that no group rebalanced.

    Java clients forget all topics when they cannot connect to any broker (KIP-899), and a leader that discovers its
    topics again rejoins. So after an outage of the gateway their groups may rebalance, but must keep their owners.
    """
    await_consumption(snapshot.group for snapshot in before)
    for snapshot in before:
        group = snapshot.group
        if gateway_was_away and snapshot.library is Library.JAVA:
            group.wait_until("the same owners as before", snapshot.has_same_owners)
        else:
            assert group.rebalances == snapshot.rebalances, group.describe()


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(ONE_OF_EACH_LIBRARY, id="one group of each library"),
        pytest.param(KINDS, id="all", marks=pytest.mark.long),
    ],
)
def test_restarts_of_coordinator_and_gateway_cost_no_membership(
    system: System, new_group: NewGroup, kinds: list[tuple[Library, str, bool]]
) -> None:
    groups = {}
    for library, assignor, is_static in kinds:
        protocol = CONSUMER if assignor == ASSIGNED_BY_COORDINATOR else CLASSIC
        group = new_group(PARTITIONS, assignor=assignor, session_ms=SESSION_MS, protocol=protocol)
        for name in NAMES:
            group.start(name, library, f"instance-{name}" if is_static else None)
        groups[group] = library
        if protocol == CONSUMER:
            # The coordinator's own are shorter, for tests that wait for a session's end or a rebalance.
            session = f"consumer.session.timeout.ms={LONGEST_CONSUMER_SESSION_MS}"
            interval = f"consumer.heartbeat.interval.ms={CONSUMER_HEARTBEAT_INTERVAL_MS}"
            configured = run_for(system.coordinator, "groups", "configure", group.group_id, session, interval)
            assert configured.returncode == 0, configured.stderr
    before = await_shared(groups)

    with producing(system.bootstrap_servers, groups):
        await_consumption(groups)
        before = with_current_rebalances(before)
        system.coordinator.kill()
        system.coordinator.start()
        await_undisturbed(before)

        before = with_current_rebalances(before)
        system.gateway.kill()
        system.gateway.start()
        await_undisturbed(before, gateway_was_away=True)

        before = with_current_rebalances(before)
        system.gateway.stop()
        system.coordinator.stop()
        system.start()
        await_undisturbed(before, gateway_was_away=True)

    for group in groups:
        ends = system.end_offsets(group.topic, PARTITIONS)
        group.await_consumed(ends)
        group.stop(*NAMES)
        group.check_everything_consumed(ends)
        group.check_ownership()
        assert system.committed(group.group_id, group.topic) == ends


def test_clients_of_a_killed_gateway_fail_over_to_another_one(system: System, new_group: NewGroup) -> None:
    """With clients that return to their bootstrap addresses, which kafka-python and aiokafka do not.

    librdkafka does, but can keep the address of a coordinator that is gone: see docs/clients.md.
    """
    other = GatewayProcess(system.broker.bootstrap_servers, system.coordinator.topics.prefix)
    both = f"{system.bootstrap_servers},{other.bootstrap_servers}"
    try:
        other.start()
        groups = {}
        for protocol in (CLASSIC, CONSUMER):
            group = new_group(PARTITIONS, session_ms=SESSION_MS, bootstrap_servers=both, protocol=protocol)
            for name in NAMES:
                group.start(name, Library.JAVA)
            groups[group] = Library.JAVA
        before = await_shared(groups)

        # Each gateway is killed once, so every client has to move.
        with producing(system.broker.bootstrap_servers, groups):
            await_consumption(groups)
            before = with_current_rebalances(before)
            system.gateway.kill()
            await_undisturbed(before, gateway_was_away=True)
            system.gateway.start()
            before = with_current_rebalances(before)
            other.kill()
            await_undisturbed(before, gateway_was_away=True)
    finally:
        other.kill()
        if not system.gateway.is_running:
            system.gateway.start()
