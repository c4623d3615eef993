"""Groups of one client library each: members come, go and are killed; and all libraries in one group."""

import pytest

from tests.clients.conftest import NewGroup
from tests.clients.group import SESSION_MS
from tests.clients.libraries import Library
from tests.clients.system import System

PARTITIONS = 6
RECORDS = 50

TAKEOVER_SECONDS = 2 * SESSION_MS / 1000
"""A member that was killed has a whole session left at most; the others have another one to share its partitions."""


@pytest.mark.parametrize(
    ("library", "assignor", "auto_commit"),
    [
        pytest.param(Library.JAVA, "cooperative-sticky", True, id="java-cooperative"),
        pytest.param(Library.LIBRDKAFKA, "range", True, id="librdkafka-eager"),
        pytest.param(Library.LIBRDKAFKA, "cooperative-sticky", False, id="librdkafka-cooperative"),
        # Its range and roundrobin lose dynamic members between which a static one stands.
        pytest.param(Library.KAFKA_PYTHON, "sticky", False, id="kafka-python-eager"),
        pytest.param(Library.KAFKA_PYTHON, "cooperative-sticky", True, id="kafka-python-cooperative"),
        pytest.param(Library.AIOKAFKA, "roundrobin", False, id="aiokafka-eager"),
    ],
)
def test_members_come_and_go(
    system: System, new_group: NewGroup, library: Library, assignor: str, auto_commit: bool
) -> None:
    group = new_group(PARTITIONS, assignor=assignor, auto_commit=auto_commit)
    everywhere = range(PARTITIONS)
    system.produce(group.topic, everywhere, RECORDS)

    group.start("a", library)
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
    group.await_consumed(dict.fromkeys(everywhere, 2 * RECORDS))

    # Whoever is the leader, and computes the assignments for all others, goes sooner or later.
    for gone in range(len(names)):
        group.end(names[gone])
        group.await_shared_by(*names[gone + 1 :]) if names[gone + 1 :] else None
    group.check_everything_consumed(dict.fromkeys(everywhere, 2 * RECORDS))
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == dict.fromkeys(everywhere, 2 * RECORDS)
