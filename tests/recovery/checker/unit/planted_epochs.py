"""Faults that are planted in the history of a correct run of members of the consumer group protocol."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import TypeVar

import msgspec

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.consumer.members import AssignedPartitions
from coordinator_logic.groups.consumer.records import GroupEpochBumped, MemberAssignmentChanged
from coordinator_logic.records import JournalEntry, MemberRemoved, StaticMemberReplaced, entry_decoder
from coordinator_logic.states import State
from tests.recovery.checker.consumer_groups.ownership import intervals_of
from tests.recovery.checker.consumer_groups.story import ConsumerStory
from tests.recovery.checker.history import Event, Function, Kind, Position, Run
from tests.recovery.checker.operations import NS_PER_MS, Operation, grouped, paired
from tests.recovery.checker.unit.planted import answered, changed, lives_on, one_of
from tests.support.parts import consumer_part

RecordT = TypeVar("RecordT", bound=Record)


def _heartbeats(run: Run) -> list[Operation]:
    """The accepted heartbeats of members that stay."""
    return [o for o in answered(run, Function.CONSUMER_HEARTBEAT) if o.call.generation > 0]


def _by_client(run: Run) -> dict[str, list[Operation]]:
    """The heartbeats of each client, in order."""
    heartbeats = (o for o in paired(run.events)[0] if o.f is Function.CONSUMER_HEARTBEAT)
    return grouped(heartbeats, lambda o: o.call.client)


def partition_of_another(run: Run, chance: Random) -> Run | None:
    """A member gets a partition, besides its own, that another member has at that time."""
    intervals = intervals_of(paired(run.events)[0], ConsumerStory())
    occasions = [
        (heartbeat, interval.key)
        for heartbeat in answered(run, Function.CONSUMER_HEARTBEAT)
        for interval in intervals
        if heartbeat.answer.lists_partitions
        and interval.begin < heartbeat.returned < interval.end
        and interval.assigned_by.call.client != heartbeat.call.client
        and interval.assigned_by.call.instance is None
    ]
    chosen = one_of(chance, occasions)
    if chosen is None:
        return None
    heartbeat, key = chosen
    return changed(run, heartbeat, value=[*heartbeat.answer.value, Position(*key)])


def smaller_assignment(run: Run, chance: Random) -> Run | None:
    """A member is told that it has one partition less."""
    heartbeat = one_of(chance, [o for o in answered(run, Function.CONSUMER_HEARTBEAT) if o.answer.value])
    return None if heartbeat is None else changed(run, heartbeat, value=heartbeat.answer.value[1:])


def epoch_that_goes_back(run: Run, chance: Random) -> Run | None:
    """A member is told an epoch that it has left."""
    later = [
        heartbeat
        for of_member in grouped(_heartbeats(run), lambda o: o.call.member).values()
        for heartbeat in of_member
        if any(o.answer.generation == heartbeat.answer.generation and o.returned < heartbeat.called for o in of_member)
    ]
    heartbeat = one_of(chance, later)
    return None if heartbeat is None else changed(run, heartbeat, generation=heartbeat.answer.generation - 1)


def _kept(run: Run) -> Iterator[Operation]:
    """Heartbeats that were accepted soon after another one, by which the member was in the epoch that they name."""
    for of_client in _by_client(run).values():
        for earlier, later in pairwise(of_client):
            is_soon = later.is_ok and later.appended - earlier.called < 3_000 * NS_PER_MS
            if earlier.is_ok and is_soon and later.call.generation == earlier.answer.generation > 0:
                yield later


def fenced_member(run: Run, chance: Random) -> Run | None:
    """A member is fenced in its own epoch."""
    heartbeat = one_of(chance, list(_kept(run)))
    return None if heartbeat is None else changed(run, heartbeat, kind=Kind.FAIL, error=Error.FENCED_MEMBER_EPOCH)


def expelled_member(run: Run, chance: Random) -> Run | None:
    """A dynamic member is told that it is unknown between two heartbeats that kept its session."""
    heartbeat = one_of(chance, [heartbeat for heartbeat in _kept(run) if heartbeat.call.instance is None])
    return None if heartbeat is None else changed(run, heartbeat, kind=Kind.FAIL, error=Error.UNKNOWN_MEMBER_ID)


def _commits(run: Run) -> list[Operation]:
    return [o for o in answered(run, Function.COMMIT) if o.call.instance is None and o.call.generation > 1]


def commit_of_an_old_epoch(run: Run, chance: Random) -> Run | None:
    """A commit is accepted that was sent in an epoch in which its member was no member yet."""
    commit = one_of(chance, _commits(run))
    if commit is None:
        return None
    events = list(run.events)
    events[commit.line - 1] = msgspec.structs.replace(commit.call, generation=1)
    return run._replace(events=events)


def refused_commit(run: Run, chance: Random) -> Run | None:
    """A commit is refused as stale whose member had its partitions in that epoch, and has them still."""
    heartbeats = _by_client(run)
    occasions = [o for o in _commits(run) if _is_undisturbed(run, o, heartbeats[o.call.client])]
    commit = one_of(chance, occasions)
    return None if commit is None else changed(run, commit, kind=Kind.FAIL, error=Error.STALE_MEMBER_EPOCH)


def _is_undisturbed(run: Run, commit: Operation, heartbeats: Sequence[Operation]) -> bool:
    """Whether the member had a heartbeat accepted right before it committed, and revoked nothing around that time."""
    around = [
        event
        for event in run.events
        if event.client == commit.call.client and abs(event.time - commit.called) < 3_000 * NS_PER_MS
    ]
    is_accepted = any(o.is_ok and 0 < commit.called - o.called < 2_000 * NS_PER_MS for o in heartbeats)
    return is_accepted and not any(event.f is Function.REVOKED or event.kind is Kind.FAIL for event in around)


# ---- the journal -----------------------------------------------------------------------------------------------


def _rewritten(
    run: Run, chance: Random, kind: type[RecordT], change: Callable[[RecordT], RecordT | None]
) -> Run | None:
    """The run with another record in one of the entries that have a record of this kind."""
    occasions = []
    for value, entry in _entries(run):
        if isinstance(entry.record, kind) and (other := change(entry.record)) is not None:
            occasions.append((value, msgspec.json.encode(msgspec.structs.replace(entry, record=other))))
    chosen = one_of(chance, occasions)
    return None if chosen is None else run._replace(journal=[chosen[1] if v == chosen[0] else v for v in run.journal])


def group_epoch_that_goes_back(run: Run, chance: Random) -> Run | None:
    """In the journal, a group epoch is smaller than the one before it."""
    return _rewritten(
        run,
        chance,
        GroupEpochBumped,
        lambda record: msgspec.structs.replace(record, epoch=record.epoch - 2) if record.epoch > 3 else None,
    )


def second_holder(run: Run, chance: Random) -> Run | None:
    """In the journal, a member has a partition that another one has."""
    held: dict[str, AssignedPartitions] = {}
    occasions: dict[int, AssignedPartitions] = {}
    for _, entry in _entries(run):
        record = entry.record
        if isinstance(record, MemberRemoved):
            held.pop(record.member_id, None)
        elif isinstance(record, StaticMemberReplaced):
            held[record.new_member_id] = held.pop(record.old_member_id, {})
        elif isinstance(record, MemberAssignmentChanged):
            held[record.member_id] = record.assigned
            of_others = [its for member, its in held.items() if member != record.member_id and its]
            if of_others:
                occasions[entry.sequence] = of_others[0]
    sequence = one_of(chance, list(occasions))
    if sequence is None:
        return None

    def take(entry: JournalEntry) -> bytes:
        record = msgspec.structs.replace(entry.record, assigned=occasions[entry.sequence])
        return msgspec.json.encode(msgspec.structs.replace(entry, record=record))

    journal = [take(entry) if entry.sequence == sequence else value for value, entry in _entries(run)]
    return run._replace(journal=journal)


def _entries(run: Run) -> list[tuple[bytes, JournalEntry]]:
    return [(value, entry_decoder().decode(value)) for value in run.journal]


# ---- settling --------------------------------------------------------------------------------------------------


def endless_convergence(run: Run, chance: Random) -> Run | None:
    """At the end, after a long quiet time, the target of the group is outdated."""
    latest = run.events[-1].time - 30_000 * NS_PER_MS
    of_members = (Function.CONSUMER_HEARTBEAT, Function.COMMIT)
    late = [event for event in run.events if event.time > latest and event.f in of_members]
    if any(_is_first(event) or event.error for event in late):
        return None
    states: dict[str, Group | None] = {}
    for name, state in run.states.items():
        consumer = consumer_part(state)
        if state is None or consumer is None:
            return None
        outdated = msgspec.structs.replace(consumer, generation=consumer.epoch + 1, state=State.ASSIGNING)
        states[name] = msgspec.structs.replace(state, part=outdated)
    return run._replace(states=states)


def endless_rejoining(run: Run, chance: Random) -> Run | None:
    """From some moment on, every heartbeat of a client is answered with an error on which it joins again."""
    latest = run.events[-1].time - 30_000 * NS_PER_MS
    begins = [o for o in _heartbeats(run) if o.returned < latest and lives_on(run, o)]
    is_quiet = not any(_is_first(event) and event.time > latest for event in run.events)
    begin = one_of(chance, begins) if is_quiet else None
    if begin is None:
        return None
    for heartbeat in _by_client(run)[begin.call.client]:
        if heartbeat.called >= begin.called and heartbeat.end is not None:
            run = changed(run, heartbeat, kind=Kind.FAIL, error=Error.FENCED_MEMBER_EPOCH, value=[])
    return run


def _is_first(event: Event) -> bool:
    """Whether a client joins: for the first time, it disturbs the others."""
    return event.f is Function.CONSUMER_HEARTBEAT and event.generation == 0
