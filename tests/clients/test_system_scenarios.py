"""The consumer scenarios of Kafka's own system tests, with the same programs, in both protocols."""

import pytest

from tests.clients.conftest import NewGroup, NewProcess
from tests.clients.group import KILLED_SESSION_MS, WatchedGroup
from tests.clients.programs.java import tool
from tests.clients.programs.libraries import CLASSIC, CONSUMER, Library
from tests.clients.system import System
from tests.support.processes import Process

NAMES = ("a", "b", "c")
RECORDS_PER_SECOND = 100
KEYS = 30
ASSIGNORS = [
    *((CLASSIC, assignor) for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")),
    *((CONSUMER, assignor) for assignor in ("uniform", "range")),
]

in_both_protocols = pytest.mark.parametrize("protocol", [pytest.param(CLASSIC, marks=pytest.mark.long), CONSUMER])


def start_producer(system: System, group: WatchedGroup, new_process: NewProcess) -> Process:
    """Start a VerifiableProducer that writes to the group's topic until it is stopped."""
    where = ("--bootstrap-server", system.bootstrap_servers, "--topic", group.topic)
    # Without keys, whole batches go to one partition, and members wait long for their first records.
    pace = ("--throughput", RECORDS_PER_SECOND, "--repeating-keys", KEYS)
    return new_process("producer", tool("kafka-verifiable-producer", *where, *pace))


def finish(system: System, group: WatchedGroup, producer: Process) -> dict[int, int]:
    """Stop the producer, then the members; check that everything was consumed and committed.

    Returns the end offset of each partition.
    """
    producer.stop()
    ends = system.end_offsets(group.topic, group.partitions)
    group.await_consumed(ends)
    group.stop(*(name for name, member in group.members.items() if member.process.is_running))
    group.check_everything_consumed(ends)
    assert system.committed(group.group_id, group.topic) == ends
    return ends


def start(group: WatchedGroup, *names: str, static: bool = False) -> None:
    """Start members with the Java client."""
    for name in names:
        group.start(name, Library.JAVA, f"instance-{name}" if static else None)


@in_both_protocols
def test_consumers_are_bounced_one_by_one_and_all_at_once(
    system: System, new_group: NewGroup, new_process: NewProcess, protocol: str
) -> None:
    group = new_group(3, protocol=protocol)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES)
    group.await_shared_by(*NAMES)

    for name in NAMES:
        group.stop(name)
        group.await_shared_by(*(other for other in NAMES if other != name))
        group.start_again(name)
        group.await_shared_by(*NAMES)
        group.await_consumption(*NAMES)
    group.stop(*NAMES)
    for name in NAMES:
        group.start_again(name)
    group.await_shared_by(*NAMES)
    group.await_consumption(*NAMES)

    finish(system, group, producer)
    group.check_ownership()
    group.check_no_duplicates()


@in_both_protocols
def test_bounced_static_consumers_cause_no_rebalance(
    system: System, new_group: NewGroup, new_process: NewProcess, protocol: str
) -> None:
    group = new_group(3, protocol=protocol)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES, static=True)
    group.await_shared_by(*NAMES)
    stays, *bounced = NAMES
    before = group.members[stays].revocations

    for name in bounced:
        group.stop(name)
        group.start_again(name)
        group.await_shared_by(*NAMES)
        group.await_consumption(*NAMES)
    group.stop(*bounced)
    for name in bounced:
        group.start_again(name)
    group.await_shared_by(*NAMES)
    group.await_consumption(*NAMES)
    assert group.members[stays].revocations == before

    finish(system, group, producer)
    group.check_ownership()
    group.check_no_duplicates()


def test_a_second_consumer_with_the_same_instance_id_fences_the_first(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(3)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES, static=True)
    group.await_shared_by(*NAMES)
    before = group.members["a"].revocations, group.members["b"].revocations

    group.start("conflicting", Library.JAVA, "instance-c")
    group.members["c"].process.wait()
    assert any("FencedInstanceIdException" in line for line in group.members["c"].process.output)
    group.await_shared_by("a", "b", "conflicting")
    group.await_consumption("a", "b", "conflicting")
    assert (group.members["a"].revocations, group.members["b"].revocations) == before

    finish(system, group, producer)


@in_both_protocols
def test_of_consumers_started_with_the_same_instance_id_one_remains(
    system: System, new_group: NewGroup, new_process: NewProcess, protocol: str
) -> None:
    group = new_group(1, protocol=protocol)
    producer = start_producer(system, group, new_process)
    for name in NAMES:
        group.start(name, Library.JAVA, "shared-instance")

    def running() -> list[str]:
        return [name for name in NAMES if group.members[name].process.is_running]

    group.wait_until("all but one fenced", lambda: len(running()) == 1)
    (remaining,) = running()
    group.await_shared_by(remaining)
    group.await_consumption(remaining)
    finish(system, group, producer)


def test_a_second_newer_consumer_with_the_same_instance_id_is_refused_until_the_first_has_left(
    system: System, new_group: NewGroup, new_process: NewProcess
) -> None:
    group = new_group(3, protocol=CONSUMER)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES, static=True)
    group.await_shared_by(*NAMES)
    before = group.rebalances

    conflicting = group.start("conflicting", Library.JAVA, "instance-c")
    conflicting.process.wait()
    assert any("UnreleasedInstanceIdException" in line for line in conflicting.process.output)
    group.await_consumption(*NAMES)
    assert group.rebalances == before

    group.stop("c")
    group.start_again("conflicting")
    group.await_shared_by("a", "b", "conflicting")
    group.await_consumption("a", "b", "conflicting")
    finish(system, group, producer)
    group.check_ownership()
    group.check_no_duplicates()


@in_both_protocols
@pytest.mark.parametrize(("kill", "auto_commit"), [(True, False), (False, True)], ids=["killed", "shut-down"])
def test_the_others_take_over_from_an_owner_that_is_killed_or_shuts_down(
    system: System, new_group: NewGroup, new_process: NewProcess, protocol: str, kill: bool, auto_commit: bool
) -> None:
    group = new_group(1, auto_commit=auto_commit, session_ms=KILLED_SESSION_MS, protocol=protocol)
    producer = start_producer(system, group, new_process)
    start(group, *NAMES)
    group.wait_until("all have joined", lambda: all(member.assignments for member in group.members.values()))
    group.wait_until("one owner", lambda: sum(len(member.owned) for member in group.members.values()) == 1)
    (owner,) = (name for name, member in group.members.items() if member.owned)
    group.await_consumption(owner)

    if kill:
        group.kill(owner)
    else:
        group.stop(owner)
    others = [name for name in NAMES if name != owner]
    group.wait_until("taken over", lambda: any(group.members[name].owned for name in others))

    finish(system, group, producer)
    group.check_ownership()
    if not kill:
        group.check_no_duplicates()


@pytest.mark.parametrize(
    "assignors",
    [
        pytest.param([ASSIGNORS[-1], ASSIGNORS[-3]], id="one of each protocol"),
        pytest.param(ASSIGNORS, id="all", marks=pytest.mark.long),
    ],
)
def test_assignments_are_valid_after_every_rebalance(
    system: System, new_group: NewGroup, assignors: list[tuple[str, str]]
) -> None:
    groups = [new_group(6, protocol=protocol, assignor=assignor) for protocol, assignor in assignors]
    started: list[str] = []
    for name in NAMES:
        started.append(name)
        for group in groups:
            start(group, name)
        for group in groups:
            group.await_shared_by(*started)
    for group in groups:
        group.stop("a")
    for group in groups:
        group.await_shared_by("b", "c")
        group.check_ownership()
