"""A group as it was, while the entries of its journal are added, and what a refusal needs to know of its past."""

from typing import NamedTuple

from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group
from coordinator_logic.records import (
    ConsumerMemberChanged,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEpochBumped,
    JournalEntry,
    MemberAdded,
    MemberRemoved,
    OffsetRecord,
    OffsetsCommitted,
    QuarantinedStateDropped,
    StateChanged,
    StaticMemberReplaced,
    apply,
)
from coordinator_logic.states import State
from streaming.explain.story.roster import Roster
from streaming.journal.fold import DOES_NOT_FIT


class End(NamedTuple):
    """How a member's id stopped being one of the group: the entry, and the reason in words."""

    entry: JournalEntry
    reason: str


class PastGroup:
    """The group after the entries so far, which come in their order and may repeat.

    The offsets of plain commits are left out: no answer depends on them but that of ResetOffsets.
    """

    def __init__(self, group_id: str) -> None:
        self.group: Group | None = None
        """None if it does not exist, or not yet."""
        self.is_known = False
        """Whether the entries tell every member that the group has."""
        self.roster = Roster()
        self.generation_began: JournalEntry | None = None
        """The entry with which the generation, or the epoch of a consumer group, began."""
        self.ended: JournalEntry | None = None
        """The entry that deleted the group last."""
        self.gone: dict[str, End] = {}
        """By member id."""
        self.taken: dict[str, JournalEntry] = {}
        """The entry with which the present member of each group instance id came."""
        self._group_id = group_id
        self._seen: dict[str, int] = {}
        self._incarnation = ""

    def add(self, entry: JournalEntry) -> bool:
        """Take the next entry; whether it changes what an answer depends on."""
        before = self._seen.get(entry.incarnation, 0)
        if entry.sequence <= before:
            return False
        self._seen[entry.incarnation] = entry.sequence
        if entry.incarnation != self._incarnation:
            self._incarnation = entry.incarnation
            self.group = Group(self._group_id, entry.incarnation)
            self.is_known, self.generation_began = entry.sequence == 1, None
        elif entry.sequence != before + 1:
            self.is_known, self.generation_began = False, None
        if type(entry.record) is OffsetsCommitted:
            if self.group is not None:
                self.group.sequence = entry.sequence
            return False
        self._note(entry)
        self._change(entry)
        return True

    def _change(self, entry: JournalEntry) -> None:
        record, group = entry.record, self.group
        if isinstance(record, GroupDeleted | QuarantinedStateDropped):
            self.group, self.is_known, self.generation_began = None, True, None
            return
        if group is None:
            return
        group.sequence, group.clock = entry.sequence, max(group.clock, entry.timestamp)
        if self.is_known:
            try:
                apply(group, record, entry.timestamp)
            except DOES_NOT_FIT:
                # Offsets that are left out can be missing, members cannot.
                self.is_known = isinstance(record, OffsetRecord)
        elif isinstance(record, GenerationStarted):
            group.generation = record.generation
        elif isinstance(record, StateChanged) and record.to_state == State.EMPTY.value and self.generation_began:
            # A classic group without members: nothing else of what was missed matters.
            self.group = Group(self._group_id, entry.incarnation, generation=group.generation)
            self.group.protocol_type, self.group.sequence = CONSUMER_PROTOCOL_TYPE, entry.sequence
            self.group.clock, self.is_known = group.clock, True

    def _note(self, entry: JournalEntry) -> None:
        record = entry.record
        self.roster.introduce(record)
        match record:
            case GroupCreated():
                self.generation_began = self.ended = None
            case GroupDeleted() | QuarantinedStateDropped():
                self.ended = entry
            case GenerationStarted() | GroupEpochBumped():
                self.generation_began = entry
            case MemberAdded(member_id=member_id) | ConsumerMemberChanged(member_id=member_id):
                instance = record.group_instance_id
                if instance is not None and (member_id in self.gone or not self._has(member_id)):
                    self.taken[instance] = entry
                self.gone.pop(member_id, None)
            case StaticMemberReplaced(group_instance_id=instance, old_member_id=old):
                self.taken[instance] = entry
                self.gone[old] = End(entry, f"another process took its group instance id {instance}")
            case MemberRemoved(member_id=member_id, reason=reason):
                self.gone[member_id] = End(entry, reason)
            case _:
                pass

    def _has(self, member_id: str) -> bool:
        group = self.group
        if group is None:
            return False
        return member_id in (group.members if group.consumer is None else group.consumer.members)
