"""The journal: unbroken, the same as the state at the end, and the same as what clients were told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE, ConsumerProtocolError, decode_assignment
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    ClassicGroupFormed,
    GenerationStarted,
    MemberAdded,
)
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, ConsumerMemberChanged
from coordinator_logic.messages import NO_GENERATION, NO_OFFSET
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetsCommitted,
    QuarantinedStateDropped,
    RequestCause,
    StaticMemberReplaced,
    entry_decoder,
    fold,
)
from coordinator_logic.states import IllegalState, IllegalTransition, State
from tests.logic.invariants.of_journals import recorded
from tests.recovery.checker.consumer_groups.answers import check_heartbeats, has_told, stale_commit
from tests.recovery.checker.consumer_groups.story import ConsumerGroupWalk, ConsumerStory
from tests.recovery.checker.generations import SEVERAL_LIVES
from tests.recovery.checker.history import Function, Key, Kind
from tests.recovery.checker.offsets import WRITES
from tests.recovery.checker.operations import Operation, Rule, Violation, grouped

_decode_entry = entry_decoder().decode


class _Place(NamedTuple):
    """A generation of an incarnation of a group."""

    group: str
    incarnation: str
    generation: int


class _Commit(NamedTuple):
    """A commit in the journal: the generation in which it was applied, and its positions.

    In a consumer group the members' epochs count, not the generation.
    """

    generation: int
    positions: frozenset[tuple[str, int, int]]
    is_in_consumer_group: bool = False


@dataclass(slots=True)
class JournalStory:
    """What the journal says.

    entries: each group's, without repetitions. incarnations: by member id, the life of its group. replaced: by the new
    member id of a static member, the old one. members: those that each generation had at its beginning, or that took
    over a static member's place later. assignments: by member id; the value is None if the bytes cannot be read.
    commits: by correlation id. consumers: what it says of consumer groups.
    """

    entries: dict[str, list[JournalEntry]] = field(default_factory=dict)
    incarnations: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    members: dict[_Place, set[str]] = field(default_factory=dict)
    assignments: dict[tuple[_Place, str], frozenset[Key] | None] = field(default_factory=dict)
    commits: dict[str, _Commit] = field(default_factory=dict)
    consumers: ConsumerStory = field(default_factory=ConsumerStory)

    def note_life(self, member: str, life: str) -> None:
        """Note that a member belongs to a life of its group."""
        known = self.incarnations.setdefault(member, life)
        if known != life:
            self.incarnations[member] = SEVERAL_LIVES


def told(journal: Sequence[bytes]) -> tuple[JournalStory, list[Violation]]:
    """Read the journal's values in the order of the log; returns what they say, and where they are broken."""
    story = JournalStory()
    broken: list[Violation] = []
    kept: dict[tuple[str, str, int], bytes] = {}
    for value in journal:
        try:
            entry = _decode_entry(value)
        except msgspec.DecodeError as error:
            broken.append(Violation(Rule.UNBROKEN_JOURNAL, "", f"an entry cannot be read: {error}"))
            continue
        number = (entry.group_id, entry.incarnation, entry.sequence)
        entries = story.entries.setdefault(entry.group_id, [])
        if number in kept:
            if kept[number] != value:
                what = f"{_name(entry)} came twice, with different bytes"
                broken.append(Violation(Rule.UNBROKEN_JOURNAL, entry.group_id, what))
            continue
        kept[number] = value
        gap = _gap(entries[-1] if entries else None, entry)
        if gap is not None:
            broken.append(Violation(Rule.UNBROKEN_JOURNAL, entry.group_id, gap))
        entries.append(entry)
    for group, entries in story.entries.items():
        walk = _Walk(story, group)
        broken += [violation for entry in entries for violation in walk.follow(entry)]
    return story, broken


def _name(entry: JournalEntry) -> str:
    return f"entry {entry.sequence} of incarnation {entry.incarnation} ({type(entry.record).__name__})"


def _gap(last: JournalEntry | None, entry: JournalEntry) -> str | None:
    """What is wrong with the place of an entry behind another one; None if nothing is."""
    if last is not None and entry.incarnation == last.incarnation:
        return None if entry.sequence == last.sequence + 1 else f"{_name(entry)} follows entry {last.sequence}"
    if isinstance(entry.record, QuarantinedStateDropped):
        return None
    if entry.sequence != 1 or not isinstance(entry.record, GroupCreated):
        return f"{_name(entry)} begins an incarnation"
    if last is not None and not isinstance(last.record, GroupDeleted | QuarantinedStateDropped):
        return f"{_name(entry)} creates a group that was not deleted"
    return None


class _Walk:
    """Goes through the entries of a group, and fills the story."""

    def __init__(self, story: JournalStory, group: str) -> None:
        self._story = story
        self._consumers = ConsumerGroupWalk(story.consumers, group)
        self._members: set[str] = set()
        self._place = _Place(group, "", 0)
        self._lives = 0
        self._is_consumer = False

    def follow(self, entry: JournalEntry) -> Iterator[Violation]:
        """Take an entry; yields what is wrong with it."""
        epoch = self._consumers.epoch
        yield from self._consumers.follow(entry)
        record, story = entry.record, self._story
        match record:
            case GroupCreated() | QuarantinedStateDropped():
                self._members, self._place = set(), _Place(entry.group_id, entry.incarnation, 0)
            case ConsumerGroupFormed() | ClassicGroupFormed():
                self._change_type(record, epoch)
            case GenerationStarted():
                yield from self._start_generation(entry, record)
            case AssignmentChanged():
                for member, assignment in record.assignments.items():
                    story.assignments[self._place, member] = _partitions(assignment) if self._is_consumer else None
            case OffsetsCommitted() if isinstance(entry.cause, RequestCause):
                self._commit(entry.cause, record)
            case _:
                self._change_members(record)

    def _change_members(self, record: Record) -> None:
        match record:
            case ConsumerMemberChanged():
                self._story.note_life(record.member_id, self._place.incarnation)
            case MemberAdded():
                self._members.add(record.member_id)
                self._story.note_life(record.member_id, self._place.incarnation)
                self._is_consumer = record.protocol_type == CONSUMER_PROTOCOL_TYPE
            case MemberRemoved():
                self._members.discard(record.member_id)
            case StaticMemberReplaced():
                self._replace(record.old_member_id, record.new_member_id)

    def _change_type(self, record: ConsumerGroupFormed | ClassicGroupFormed, epoch: int | None) -> None:
        goes_on = bool(self._members) if isinstance(record, ConsumerGroupFormed) else record.state != State.EMPTY.value
        if not goes_on:
            self._lives += 1
            self._place = self._place._replace(incarnation=f"{self._place.incarnation}+{self._lives}")
        # A classic group goes on with its group epoch as the next generation.
        generation = epoch - 1 if goes_on and epoch else 0
        self._members, self._place = set(), self._place._replace(generation=generation)

    def _replace(self, old: str, new: str) -> None:
        story, place = self._story, self._place
        self._members = self._members - {old} | {new}
        if new != old:
            story.replaced[new] = old
        story.note_life(new, place.incarnation)
        story.members.setdefault(place, set()).add(new)
        story.assignments[place, new] = story.assignments.get((place, old), frozenset())

    def _start_generation(self, entry: JournalEntry, record: GenerationStarted) -> Iterator[Violation]:
        if record.generation != self._place.generation + 1:
            what = f"{_name(entry)} starts generation {record.generation} after {self._place.generation}"
            yield Violation(Rule.UNBROKEN_JOURNAL, entry.group_id, what)
        self._place = self._place._replace(generation=record.generation)
        # A group that is upgraded and downgraded again may go on in the same generation.
        self._story.members.setdefault(self._place, set()).update(self._members)

    def _commit(self, cause: RequestCause, record: OffsetsCommitted) -> None:
        is_in_consumer_group = self._consumers.epoch is not None
        positions = frozenset((o.topic, o.partition, o.offset) for o in record.offsets)
        self._story.commits[cause.correlation_id] = _Commit(self._place.generation, positions, is_in_consumer_group)
        if is_in_consumer_group:
            self._consumers.committed(cause)


def _partitions(assignment: bytes) -> frozenset[Key] | None:
    if not assignment:
        return frozenset()
    try:
        return frozenset((p.topic, p.partition) for p in decode_assignment(assignment).partitions)
    except ConsumerProtocolError:
        return None


# ---- the state -------------------------------------------------------------------------------------------------


def check_states(story: JournalStory, states: Mapping[str, Group | None]) -> Iterator[Violation]:
    """Check that each group's entries fold to its state at the end, and that every group of the journal has one.

    Without any states, nobody has read them.
    """
    groups = states.keys() | story.entries.keys() if states else set[str]()
    for group in sorted(groups):
        state = states.get(group)
        try:
            folded = fold(story.entries.get(group, []))
        except (IllegalTransition, IllegalState, KeyError) as error:
            yield Violation(Rule.JOURNAL_IS_STATE, group, f"the journal cannot be folded: {error}")
            continue
        if folded is None or state is None:
            if folded is not state:
                only = "the journal" if state is None else "the state"
                yield Violation(Rule.JOURNAL_IS_STATE, group, f"the group exists in {only} only")
        elif recorded(folded) != recorded(state) or folded.sequence != state.sequence:
            yield Violation(Rule.JOURNAL_IS_STATE, group, f"they differ in {_difference(folded, state)}")


def _difference(folded: Group, state: Group) -> str:
    fields = [name for name in ("sequence", "offsets") if getattr(folded, name) != getattr(state, name)]
    one, other = folded.part, state.part
    if type(one) is not type(other):
        return ", ".join([*fields, "type"])
    fields += [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
    return ", ".join(fields) or "the details of transactions"


# ---- the answers -----------------------------------------------------------------------------------------------


def check_told(story: JournalStory, operations: Sequence[Operation]) -> Iterator[Violation]:
    """Check that the journal has what clients were told, and nothing that they were told did not happen."""
    yield from check_heartbeats(story.consumers, operations)
    for operation in operations:
        what = None
        if operation.f in WRITES and operation.call.correlation_id:
            commit = story.commits.get(operation.call.correlation_id)
            what = _commit_differs(commit, operation)
            if what is None and commit is not None and commit.is_in_consumer_group:
                standing = story.consumers.committed[operation.call.correlation_id]
                if (stale := stale_commit(standing, operation)) is not None:
                    yield Violation(Rule.COMMITS_BY_EPOCH, operation.call.group, stale, operation.lines)
        elif operation.is_ok and operation.f in (Function.JOIN, Function.SYNC):
            what = _membership_differs(story, operation)
        if what is not None:
            yield Violation(Rule.JOURNAL_AND_ANSWERS, operation.call.group, what, operation.lines)


def _commit_differs(commit: _Commit | None, operation: Operation) -> str | None:
    stored = [position for position in operation.positions if position.offset != NO_OFFSET]
    if commit is None:
        return "an acknowledged commit is not in the journal" if operation.is_ok and stored else None
    if operation.kind is Kind.FAIL:
        return f"a commit was refused with {operation.error.name}, and is in the journal"
    if operation.is_ok and commit.positions != {(p.topic, p.partition, p.offset) for p in stored}:
        return "the journal has other offsets than the acknowledged commit"
    sent_in = operation.call.generation
    if commit.is_in_consumer_group:
        return None
    if sent_in not in (NO_GENERATION, commit.generation):
        return f"a commit of generation {sent_in} was applied in generation {commit.generation}"
    return None


def _membership_differs(story: JournalStory, operation: Operation) -> str | None:
    if has_told(story.consumers, operation):
        return None
    member, generation = operation.member, operation.answer.generation
    life = story.incarnations.get(member, "")
    if life == SEVERAL_LIVES:
        return None
    place = _Place(operation.call.group, life, generation)
    if member not in story.members.get(place, set()):
        return f"{member} was told that it is in generation {generation}, where the journal does not have it"
    assigned = story.assignments.get((place, member))
    if operation.f is Function.SYNC and assigned is not None and assigned != {p.key for p in operation.answer.value}:
        return f"{member} got another assignment in generation {generation} than the journal has"
    return None


def check_journal(
    story: JournalStory, operations: Sequence[Operation], states: Mapping[str, Group | None]
) -> Iterator[Violation]:
    """Check the journal against the states and the answers; the answers about groups without an entry are left out."""
    yield from check_states(story, states)
    recorded_groups = story.entries.keys()
    by_group = grouped(operations, lambda operation: operation.call.group)
    for group in recorded_groups & by_group.keys():
        yield from check_told(story, by_group[group])
