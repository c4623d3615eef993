"""Groups of one client library each: members come, go and are killed; and all libraries in one group."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pytest

from tests.clients.conftest import NewGroup
from tests.clients.group import KILLED_SESSION_MS, WatchedGroup
from tests.clients.libraries import Library
from tests.clients.system import System

PARTITIONS = 6
RECORDS = 50
STORIES_AT_ONCE = 3

TAKEOVER_SECONDS = 2 * KILLED_SESSION_MS / 1000
"""A member that was killed has a whole session left at most; the others have another one to share its partitions."""


class Kind(NamedTuple):
    """What a group's members have in common."""

    library: Library
    assignor: str
    auto_commit: bool


KINDS = {
    "java-cooperative": Kind(Library.JAVA, "cooperative-sticky", True),
    "librdkafka-eager": Kind(Library.LIBRDKAFKA, "range", True),
    "librdkafka-cooperative": Kind(Library.LIBRDKAFKA, "cooperative-sticky", False),
    # Its range and roundrobin forget dynamic members when a static one stands between them.
    "kafka-python-eager": Kind(Library.KAFKA_PYTHON, "sticky", False),
    "kafka-python-cooperative": Kind(Library.KAFKA_PYTHON, "cooperative-sticky", True),
    "aiokafka-eager": Kind(Library.AIOKAFKA, "roundrobin", False),
}


@pytest.fixture(scope="module")
def stories(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """The story of each kind of group. Some are told at the same time, since most of a story is waiting."""
    folder = tmp_path_factory.mktemp("stories")
    groups = {
        name: system.new_group(folder, PARTITIONS, assignor=kind.assignor, auto_commit=kind.auto_commit)
        for name, kind in KINDS.items()
    }
    with ThreadPoolExecutor(STORIES_AT_ONCE) as pool:
        try:
            yield {name: pool.submit(come_and_go, system, groups[name], kind.library) for name, kind in KINDS.items()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in groups.values():
                group.kill_all()


@pytest.mark.parametrize("kind", KINDS)
def test_members_come_and_go(stories: dict[str, Future[None]], kind: str) -> None:
    stories[kind].result()


def come_and_go(system: System, group: WatchedGroup, library: Library) -> None:
    """Joins, a static member's return, a clean end, a kill -9: all that a group of one library goes through."""
    everywhere = range(PARTITIONS)
    system.produce(group.topic, everywhere, RECORDS)

    group.start("a", library, session_ms=KILLED_SESSION_MS)
    group.start("b", library)
    group.start("static", library, instance_id="till-1")
    group.await_shared_by("a", "b", "static")
    group.await_consumed(dict.fromkeys(everywhere, RECORDS))

    before = group.members["a"].revocations, group.members["b"].revocations
    group.end("static")
    group.start_again("static")
    group.await_shared_by("a", "b", "static")
    assert (group.members["a"].revocations, group.members["b"].revocations) == before

    group.end("b")
    group.await_shared_by("a", "static")
    group.start("c", library)
    group.await_shared_by("a", "c", "static")
    group.kill("a")
    group.await_shared_by("c", "static", seconds=TAKEOVER_SECONDS)

    system.produce(group.topic, everywhere, RECORDS)
    ends = dict.fromkeys(everywhere, 2 * RECORDS)
    group.await_consumed(ends)
    group.end("c", "static")
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends


def test_all_libraries_share_one_group(system: System, new_group: NewGroup) -> None:
    group = new_group(2 * len(Library), assignor="range")
    everywhere = range(group.partitions)
    system.produce(group.topic, everywhere, RECORDS)
    names = [str(library) for library in Library]

    for name, library in zip(names, Library, strict=True):
        group.start(name, library)
    group.await_shared_by(*names)
    system.produce(group.topic, everywhere, RECORDS)
    ends = dict.fromkeys(everywhere, 2 * RECORDS)
    group.await_consumed(ends)
    group.await_committed(ends)

    # Whoever is the leader, and computes the assignments for all others, goes sooner or later.
    for gone in range(len(names)):
        group.end(names[gone])
        group.await_shared_by(*names[gone + 1 :]) if names[gone + 1 :] else None
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends
