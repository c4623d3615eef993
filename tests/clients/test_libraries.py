"""Groups with one client library each, whose members join, leave and are killed; and one group with all libraries."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pytest

from tests.clients.conftest import NewGroup
from tests.clients.group import KILLED_SESSION_MS, SESSION_MS, WatchedGroup
from tests.clients.programs.libraries import Library
from tests.clients.system import System

PARTITIONS = 6
RECORDS = 50
CONCURRENT_SCENARIOS = 3

TAKEOVER_SECONDS = SESSION_MS / 1000 - 10
"""The killed member's session, and a generous time for the rebalance; less than the session of the other members."""


class Kind(NamedTuple):
    """The settings that a group's members share."""

    library: Library
    assignor: str
    auto_commit: bool


KINDS = {
    "java-cooperative": Kind(Library.JAVA, "cooperative-sticky", True),
    "librdkafka-eager": Kind(Library.LIBRDKAFKA, "range", True),
    "librdkafka-cooperative": Kind(Library.LIBRDKAFKA, "cooperative-sticky", False),
    # Its range and roundrobin assignors omit dynamic members that a static one separates.
    "kafka-python-eager": Kind(Library.KAFKA_PYTHON, "sticky", False),
    "kafka-python-cooperative": Kind(Library.KAFKA_PYTHON, "cooperative-sticky", True),
    "aiokafka-eager": Kind(Library.AIOKAFKA, "roundrobin", False),
}


@pytest.fixture(scope="module")
def scenarios(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """The scenario of each kind of group. Several run at the same time, because they mostly wait."""
    folder = tmp_path_factory.mktemp("scenarios")
    groups = {
        name: system.new_group(folder, PARTITIONS, assignor=kind.assignor, auto_commit=kind.auto_commit)
        for name, kind in KINDS.items()
    }
    with ThreadPoolExecutor(CONCURRENT_SCENARIOS) as pool:
        try:
            yield {name: pool.submit(run_scenario, system, groups[name], kind.library) for name, kind in KINDS.items()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in groups.values():
                group.kill_all()


@pytest.mark.parametrize("kind", KINDS)
def test_members_join_leave_and_are_killed(scenarios: dict[str, Future[None]], kind: str) -> None:
    scenarios[kind].result()


def run_scenario(system: System, group: WatchedGroup, library: Library) -> None:
    """Members join; a static one restarts; one shuts down cleanly; one is killed; an operator resets the offsets."""
    partitions = range(PARTITIONS)
    system.produce(group.topic, partitions, RECORDS)

    group.start("a", library, session_ms=KILLED_SESSION_MS)
    group.start("b", library)
    group.start("static", library, instance_id="till-1")
    group.await_shared_by("a", "b", "static")
    group.await_consumed(dict.fromkeys(partitions, RECORDS))

    before = group.members["a"].revocations, group.members["b"].revocations
    group.stop("static")
    group.start_again("static")
    group.await_shared_by("a", "b", "static")
    assert (group.members["a"].revocations, group.members["b"].revocations) == before

    group.stop("b")
    group.await_shared_by("a", "static")
    group.start("c", library)
    group.await_shared_by("a", "c", "static")
    group.kill("a")
    group.await_shared_by("c", "static", seconds=TAKEOVER_SECONDS)

    system.produce(group.topic, partitions, RECORDS)
    ends = dict.fromkeys(partitions, 2 * RECORDS)
    group.await_consumed(ends)

    # Every member, cooperative or not, gives up its position, and fetches the new offset.
    delivered = group.delivered
    system.reset_offsets(group.group_id, group.topic, dict.fromkeys(partitions, 0))
    everything = sum(ends.values())
    group.wait_until("everything consumed again", lambda: group.delivered >= delivered + everything)
    group.await_shared_by("c", "static")
    group.stop("c", "static")
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends


def test_all_libraries_share_one_group(system: System, new_group: NewGroup) -> None:
    group = new_group(2 * len(Library))
    partitions = range(group.partitions)
    system.produce(group.topic, partitions, RECORDS)
    names = [str(library) for library in Library]

    for name, library in zip(names, Library, strict=True):
        group.start(name, library)
    group.await_shared_by(*names)
    system.produce(group.topic, partitions, RECORDS)
    ends = dict.fromkeys(partitions, 2 * RECORDS)
    group.await_consumed(ends)
    group.await_committed(ends)

    # The members leave one by one, so each library's member loses or takes over leadership.
    for index, name in enumerate(names):
        group.stop(name)
        if remaining := names[index + 1 :]:
            group.await_shared_by(*remaining)
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends
