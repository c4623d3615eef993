"""A group as its entries make it, and how much of it they tell.

An entry is applied as the coordinator applied it. Where entries are missing, the members are not known: one that joined
before the gap may be there or gone. So the group becomes Empty, with its generation and the offsets that are known,
until an entry says that no member is left. Members that are there learn it from their next heartbeat, and join again.

If the coordinator was killed while it wrote, the journal may have only a part of a group's last turn. Such a turn is
left out: its request is read again.
"""

from collections.abc import Sequence
from enum import Enum

from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.group import Group
from coordinator_logic.group.part import new_part
from coordinator_logic.groups.classic.records import GenerationStarted, MemberAdded, StateChanged
from coordinator_logic.records import (
    GroupConfigChanged,
    GroupDeleted,
    JournalEntry,
    OffsetRecord,
    QuarantinedStateDropped,
    RequestCause,
    apply,
)
from coordinator_logic.states import IllegalState, IllegalTransition, State
from streaming.journal.fold import Observer
from streaming.journal.turns import is_cut

DOES_NOT_FIT = (IllegalState, IllegalTransition, KeyError, ValueError)
"""What applying a record to a group raises that it does not fit."""


UNKNOWN = "Unknown"
"""Kafka's name of a state or a type that is not known: the journal no longer has what would tell it."""


class Known(Enum):
    """How much of a group is known."""

    ALL = "all"
    MEMBERS = "members, and the offsets since the journal's beginning"
    OFFSETS = "offsets since the journal's beginning, but no members"


class FoldedGroup(Observer):
    """A group after its whole turns, from the group of a checkpoint on, or from nothing."""

    __slots__ = ("_knows_generation", "_knows_members", "_knows_offsets", "applied", "group")

    def __init__(self, group: Group | None = None) -> None:
        self.group = group
        """None if it does not exist."""
        self.applied: dict[int, int] = {}
        """The offset after the last request that an entry names, by partition."""
        self._knows_members = self._knows_offsets = self._knows_generation = True

    @property
    def known(self) -> Known:
        """How much is known."""
        if not self._knows_members:
            return Known.OFFSETS
        return Known.ALL if self._knows_offsets else Known.MEMBERS

    def on_begin(self, entry: JournalEntry) -> None:
        """Begin with a group that has nothing, of which nothing is known if entries are missing."""
        self.group = Group(entry.group_id, entry.incarnation, sequence=entry.sequence - 1)
        self._knows_members = self._knows_offsets = True
        if entry.sequence > 1:
            self._forget_what_is_missing()

    def on_gap(self, _entry: JournalEntry) -> None:
        """Forget what may have changed meanwhile."""
        self._forget_what_is_missing()

    def on_turn(self, turn: Sequence[JournalEntry]) -> None:
        """Apply a turn."""
        for entry in turn:
            self.apply(entry)
            cause = entry.cause
            if isinstance(cause, RequestCause) and cause.offset >= self.applied.get(cause.partition, 0):
                self.applied[cause.partition] = cause.offset + 1

    def on_end(self, turn: Sequence[JournalEntry]) -> None:
        """Apply the last turn, unless entries of it are missing: of a group's first turn, an empty group is left."""
        if not is_cut(turn, self.group):
            self.on_turn(turn)

    def retain_offsets_from(self, now: int) -> None:
        """Let the retention of the offsets begin at ``now`` (ms since the epoch) if the members are not known."""
        if self.group is not None and not self._knows_members:
            self.group.part.state_timestamp = now

    def apply(self, entry: JournalEntry) -> None:
        """Apply an entry, as far as the group is known."""
        group, record = self.group, entry.record
        if group is None:
            # Deleted. A broken journal may have more.
            return
        group.sequence = entry.sequence
        group.clock = max(group.clock, entry.timestamp)
        if isinstance(record, GroupDeleted | QuarantinedStateDropped):
            self.group = None
            self._knows_members = self._knows_offsets = True
        elif isinstance(record, OffsetRecord):
            try:
                apply(group, record, entry.timestamp)
            except DOES_NOT_FIT:
                # The end of a transaction whose offsets are missing.
                self._knows_offsets = False
        elif self._knows_members:
            try:
                apply(group, record, entry.timestamp)
            except DOES_NOT_FIT:
                self._forget_what_is_missing()
                self._apply_without_members(group, entry)
        else:
            self._apply_without_members(group, entry)

    def _apply_without_members(self, group: Group, entry: JournalEntry) -> None:
        match entry.record:
            case GenerationStarted(generation=generation):
                group.part.generation = generation
                self._knows_generation = True
            case MemberAdded(protocol_type=protocol_type):
                group.part.protocol_type = protocol_type
            case StateChanged(from_state=before, to_state=State.EMPTY.value):
                group.part.previous_state = State(before)
                group.part.state_timestamp = entry.timestamp
                self._knows_members = self._knows_generation
            case GroupConfigChanged() as record:
                apply(group, record, entry.timestamp)
            case _:
                pass

    def _forget_what_is_missing(self) -> None:
        group = self.group
        self._knows_members = self._knows_offsets = self._knows_generation = False
        if group is None:
            return
        known, left = group.part, new_part()
        left.previous_state, left.state_timestamp = known.previous_state, known.state_timestamp
        left.generation = known.generation
        # Offsets of a group without a type expire some time after their commit, in place of the last member's end.
        left.protocol_type = known.protocol_type or CONSUMER_PROTOCOL_TYPE
        group.part = left
