"""The scenarios of Kafka's own system tests of consumers, with the programs that those use."""

import pytest

from tests.clients.conftest import NewGroup, NewProcess
from tests.clients.group import KILLED_SESSION_MS, WatchedGroup
from tests.clients.java import tool
from tests.clients.libraries import Library
from tests.clients.process import Process
from tests.clients.system import System

NAMES = ("a", "b", "c")
RECORDS_PER_SECOND = 100
KEYS = 30
TAKEOVER_SECONDS = 2 * KILLED_SESSION_MS / 1000


def start_producer(system: System, group: WatchedGroup, new_process: NewProcess) -> Process:
    """A VerifiableProducer that writes to the group's topic until it is ended."""
    where = ("--bootstrap-server", system.bootstrap_servers, "--topic", group.topic)
    # Without keys, whole batches go to one partition, and members wait long for their first record.
    pace = ("--throughput", RECORDS_PER_SECOND, "--repeating-keys", KEYS)
    return new_process("producer", tool("kafka-verifiable-producer", *where, *pace))


def finish(system: System, group: WatchedGroup, producer: Process) -> dict[int, int]:
    """End producer and members in order; the topic's ends, up to which all was consumed and committed."""
    producer.end()
    ends = system.end_offsets(group.topic, group.partitions)
    group.await_consumed(ends)
    group.end(*(name for name, member in group.members.items() if member.process.is_running))
    group.check_everything_consumed(ends)
    assert system.committed(group.group_id, group.topic) == ends
    return ends


def start(group: WatchedGroup, *names: str, static: bool = False) -> None:
    for name in names:
        group.start(name, Library.JAVA, f"instance-{name}" if static else None)


def test_consumers_are_bounced_one_by_one_and_all_at_once(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(3)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES)
    group.await_shared_by(*NAMES)

    for name in NAMES:
        group.end(name)
        group.await_shared_by(*(other for other in NAMES if other != name))
        group.start_again(name)
        group.await_shared_by(*NAMES)
        group.await_consumption(*NAMES)
    group.end(*NAMES)
    for name in NAMES:
        group.start_again(name)
    group.await_shared_by(*NAMES)
    group.await_consumption(*NAMES)

    finish(system, group, producer)
    group.check_ownership()
    group.check_no_duplicates()


def test_static_consumers_are_bounced_and_nobody_else_notices(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(3)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES, static=True)
    group.await_shared_by(*NAMES)
    stays, *bounced = NAMES
    before = group.members[stays].revocations

    for name in bounced:
        group.end(name)
        group.start_again(name)
        group.await_shared_by(*NAMES)
        group.await_consumption(*NAMES)
    group.end(*bounced)
    for name in bounced:
        group.start_again(name)
    group.await_shared_by(*NAMES)
    group.await_consumption(*NAMES)
    assert group.members[stays].revocations == before

    finish(system, group, producer)
    group.check_ownership()
    group.check_no_duplicates()


def test_of_two_with_the_same_instance_id_the_newer_one_stays(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(3)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES, static=True)
    group.await_shared_by(*NAMES)
    before = group.members["a"].revocations, group.members["b"].revocations

    group.start("conflicting", Library.JAVA, "instance-c")
    group.members["c"].process.wait()
    assert any("FencedInstanceIdException" in line for line in group.members["c"].process.said)
    group.await_shared_by("a", "b", "conflicting")
    group.await_consumption("a", "b", "conflicting")
    assert (group.members["a"].revocations, group.members["b"].revocations) == before

    finish(system, group, producer)


def test_of_those_that_start_with_the_same_instance_id_one_is_left(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(1)
    producer = start_producer(system, group, new_process)
    for name in NAMES:
        group.start(name, Library.JAVA, "the-same")

    def running() -> list[str]:
        return [name for name in NAMES if group.members[name].process.is_running]

    group.wait_until("all but one fenced", lambda: len(running()) == 1)
    (left,) = running()
    group.await_shared_by(left)
    group.await_consumption(left)
    finish(system, group, producer)


@pytest.mark.parametrize(("hard", "auto_commit"), [(True, False), (False, True)], ids=["hard", "clean"])
def test_when_an_owner_fails_the_others_take_over(
    system: System, new_group: NewGroup, new_process: NewProcess, hard: bool, auto_commit: bool
) -> None:
    group = new_group(1, auto_commit=auto_commit, session_ms=KILLED_SESSION_MS)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES)
    group.wait_until("all have joined", lambda: all(member.assignments for member in group.members.values()))
    group.wait_until("one owner", lambda: sum(len(member.owned) for member in group.members.values()) == 1)
    (owner,) = (name for name, member in group.members.items() if member.owned)
    group.await_consumption(owner)

    if hard:
        group.kill(owner)
    else:
        group.end(owner)
    others = [name for name in NAMES if name != owner]
    group.wait_until("taken over", lambda: any(group.members[name].owned for name in others), TAKEOVER_SECONDS)

    finish(system, group, producer)
    group.check_ownership()
    if not hard:
        group.check_no_duplicates()


def test_assignments_are_valid_after_every_rebalance(system: System, new_group: NewGroup) -> None:
    assignors = ("range", "roundrobin", "sticky", "cooperative-sticky")
    groups = [new_group(6, assignor=assignor) for assignor in assignors]
    started: list[str] = []
    for name in NAMES:
        started.append(name)
        for group in groups:
            start(group, name)
        for group in groups:
            group.await_shared_by(*started)
    for group in groups:
        group.end("a")
    for group in groups:
        group.await_shared_by("b", "c")
        group.check_ownership()
