"""Rebuild groups from the journal, as far as it goes back, from nothing or from the groups of a backup.

An entry is applied as the coordinator applied it. Where entries are missing, the members are not known: one that joined
before the gap may be there or gone. So the group becomes Empty, with its generation and the offsets that are known,
until an entry says that no member is left. Members that are there learn it from their next heartbeat, and join again.

If the coordinator was killed while it wrote, the journal may have only a part of a group's last turn. Such a turn is
left out: its request is read again.
"""

from array import array
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple
from zlib import crc32

import msgspec

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group
from coordinator_logic.records import (
    AssignmentChanged,
    ConsumerGroupFormed,
    ConsumerMemberChanged,
    GenerationStarted,
    GroupConfigChanged,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    LeaderElected,
    MemberAdded,
    MemberRemoved,
    MemberUpdated,
    OffsetRecord,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    Record,
    RequestCause,
    StateChanged,
    StaticMemberReplaced,
    apply,
)
from coordinator_logic.states import IllegalState, IllegalTransition, State

DOES_NOT_FIT = (IllegalState, IllegalTransition, KeyError, ValueError)
"""What applying a record to a group raises that it does not fit."""

_encode = msgspec.json.Encoder().encode


class Known(Enum):
    """How much of a group is known."""

    ALL = "all"
    MEMBERS = "members, and the offsets since the journal's beginning"
    OFFSETS = "offsets since the journal's beginning, but no members"


class GroupFold:
    """A group while its entries are added, in the order of the journal.

    Args:
        group: The group in the backup, None if it has none.
        read: The offset after the last request that the backup has read, by partition.
        backup_epoch: The job's epoch in the backup; 0 if it is not known.
    """

    __slots__ = (
        "_backup_epoch",
        "_contents",
        "_ended",
        "_first",
        "_knows_generation",
        "_knows_members",
        "_knows_offsets",
        "_newest_epoch",
        "_read",
        "_turn",
        "applied",
        "group",
        "has_later_entries",
        "incarnation",
        "is_forked",
        "sequence",
        "voids_backup",
    )

    def __init__(self, group: Group | None, read: dict[int, int], backup_epoch: int = 0) -> None:
        self.group = group
        self.incarnation = "" if group is None else group.incarnation
        self.sequence = 0 if group is None else group.sequence
        """That of the newest entry, also of one that is held back."""
        self.has_later_entries = False
        """Whether an entry is newer than the backup."""
        self.applied: dict[int, int] = {}
        """The offset after the last request that an entry names, by partition."""
        self.is_forked = False
        """Whether two coordinators have told different histories: see :func:`last_history`."""
        self.voids_backup = False
        """Whether a later job has told otherwise what the backup has: that job went on from an older checkpoint."""
        self._read, self._backup_epoch = read, backup_epoch
        self._knows_members = self._knows_offsets = self._knows_generation = True
        self._turn: list[JournalEntry] = []
        self._first = self.sequence + 1
        self._contents = array("I")
        self._newest_epoch = 0
        self._ended: set[str] = set()

    @property
    def known(self) -> Known:
        """How much is known."""
        if not self._knows_members:
            return Known.OFFSETS
        return Known.ALL if self._knows_offsets else Known.MEMBERS

    def add(self, entry: JournalEntry) -> None:
        """Add the next entry; entries may repeat."""
        if entry.incarnation in self._ended:
            return
        if entry.incarnation != self.incarnation and self._is_older(entry):
            self._note_in_backup(entry)
            return
        content = content_of(entry)
        if entry.incarnation == self.incarnation and entry.sequence <= self.sequence:
            place = entry.sequence - self._first
            if place < 0:
                self._note_in_backup(entry)
            else:
                self.is_forked |= self._contents[place] != content
            return
        self.is_forked |= entry.job_epoch < self._newest_epoch
        self._newest_epoch = entry.job_epoch
        if entry.incarnation != self.incarnation:
            self._begin(entry)
        elif entry.sequence > self.sequence + 1:
            self._apply_turn()
            self._forget_what_is_missing()
            self._first, self._contents = entry.sequence, array("I")
        if self._turn and self._turn[-1].cause != entry.cause:
            self._apply_turn()
        self._turn.append(entry)
        self._contents.append(content)
        self.sequence = entry.sequence
        self.has_later_entries = True

    def finish(self, now: int) -> None:
        """End the group after its last entry.

        The retention of a group's offsets begins at ``now`` (ms since the epoch) if its members are not known.
        """
        if is_cut(self._turn, self.group):
            self._turn = []
        self._apply_turn()
        if self.group is not None and not self._knows_members:
            self.group.state_timestamp = now

    def _is_older(self, entry: JournalEntry) -> bool:
        """Whether another incarnation than that of the backup is older than it."""
        if self.has_later_entries or self.group is None:
            return False
        cause = entry.cause
        if isinstance(cause, RequestCause):
            return cause.offset < self._read.get(cause.partition, 0)
        return entry.timestamp <= self.group.clock

    def _note_in_backup(self, entry: JournalEntry) -> None:
        """Note an entry at a place that the backup includes. A replay writes entries with their first epoch."""
        if 0 < self._backup_epoch < entry.job_epoch:
            self.is_forked = self.voids_backup = True

    def _begin(self, entry: JournalEntry) -> None:
        """Begin with another incarnation."""
        if self.incarnation:
            self._ended.add(self.incarnation)
        for held in self._turn:
            self._note_applied(held)
        self._turn = []
        self.incarnation, self._first, self._contents = entry.incarnation, entry.sequence, array("I")
        self.group = Group(entry.group_id, entry.incarnation, sequence=entry.sequence - 1)
        self._knows_members = self._knows_offsets = True
        if entry.sequence > 1:
            self._forget_what_is_missing()

    def _apply_turn(self) -> None:
        for entry in self._turn:
            self._apply(entry)
            self._note_applied(entry)
        self._turn = []

    def _note_applied(self, entry: JournalEntry) -> None:
        cause = entry.cause
        if isinstance(cause, RequestCause) and cause.offset >= self.applied.get(cause.partition, 0):
            self.applied[cause.partition] = cause.offset + 1

    def _apply(self, entry: JournalEntry) -> None:
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
                group.generation = generation
                self._knows_generation = True
            case MemberAdded(protocol_type=protocol_type):
                group.protocol_type = protocol_type
            case StateChanged(from_state=before, to_state=State.EMPTY.value):
                group.previous_state = State(before)
                group.state_timestamp = entry.timestamp
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
        for member_id in list(group.members):
            group.remove_member(member_id)
        group.consumer = None
        group.state = State.EMPTY
        group.leader = group.protocol_name = group.subscribed_topics = None
        # Offsets of a group without a type expire some time after their commit, in place of the last member's end.
        group.protocol_type = group.protocol_type or CONSUMER_PROTOCOL_TYPE


def content_of(entry: JournalEntry) -> int:
    """A number that two entries share if they tell the same, whichever coordinator wrote them."""
    return crc32(_encode((entry.timestamp, entry.record, entry.cause)))


def is_cut(turn: list[JournalEntry], group: Group | None) -> bool:
    """Whether the coordinator certainly had further entries to write in a group's last turn.

    ``group`` is as before the turn. A turn that only looks complete is missing a rebalance at most, which the members'
    next requests begin again.
    """
    if not turn:
        return False
    records = [entry.record for entry in turn]
    changes = [record.to_state for record in records if isinstance(record, StateChanged)]
    before = State.EMPTY.value if group is None else group.state.value
    state = changes[-1] if changes else before
    is_replaced = any(isinstance(record, StaticMemberReplaced) for record in records)
    may_end = state == State.PREPARING_REBALANCE.value or (state == State.STABLE.value and is_replaced)
    match records[-1]:
        case GenerationStarted() | AssignmentChanged():
            return True
        case GroupCreated():
            # A JoinGroup that only hands out a member id creates the group.
            cause = turn[-1].cause
            return not (isinstance(cause, RequestCause) and cause.api == "JoinGroup")
        case MemberAdded():
            return not may_end or _leader_after(records, group) is None
        case MemberRemoved(member_id=gone) | StaticMemberReplaced(old_member_id=gone):
            return not may_end or _leader_after(records, group) == gone
        case ConsumerGroupFormed():
            return True
        case ConsumerMemberChanged() as changed:
            return _changes_subscription(changed, group)
        case MemberUpdated() | LeaderElected():
            return not may_end
        case OffsetsDeleted():
            return _is_reset(turn)
        case OffsetsCommitted():
            return _is_reset(turn) and before != State.EMPTY.value
        case _:
            return False


def _is_reset(turn: list[JournalEntry]) -> bool:
    """Whether ResetOffsets caused the turn. It commits after it has deleted, and ends with the members' generation."""
    cause = turn[-1].cause
    return isinstance(cause, RequestCause) and cause.api == RESET_OFFSETS.name


def _changes_subscription(record: ConsumerMemberChanged, group: Group | None) -> bool:
    """Whether a new group epoch follows the record, unless the topics are those of a pattern."""
    consumer = None if group is None else group.consumer
    known = None if consumer is None else consumer.members.get(record.member_id)
    return known is None or list(known.subscribed_topic_names) != record.subscribed_topic_names


def _leader_after(records: list[Record], group: Group | None) -> str | None:
    elected = [record.member_id for record in records if isinstance(record, LeaderElected)]
    if elected:
        return elected[-1]
    return None if group is None else group.leader


class _Place(NamedTuple):
    incarnation: str
    sequence: int


def last_history(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """The entries of one group that hold, if two coordinators have told different histories.

    They do after a copy of a checkpoint was started without the requests since it, and while one that is paused does
    not know that another has taken over. The entry of the later epoch holds, of the same epoch the later entry; what
    followed the other is void.
    """
    kept: list[JournalEntry] = []
    places: dict[_Place, int] = {}
    for entry in entries:
        place = _Place(entry.incarnation, entry.sequence)
        index = places.get(place)
        if index is None:
            if kept and entry.job_epoch < kept[-1].job_epoch:
                continue
        elif content_of(kept[index]) == content_of(entry) or entry.job_epoch < kept[index].job_epoch:
            continue
        else:
            for void in kept[index:]:
                del places[_Place(void.incarnation, void.sequence)]
            del kept[index:]
        places[place] = len(kept)
        kept.append(entry)
    return kept
