"""A group as it was, while the entries of its journal are added, and what a refusal needs to know of its past."""

from typing import NamedTuple

from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import GenerationStarted, MemberAdded
from coordinator_logic.groups.consumer.records import ConsumerMemberChanged, GroupEpochBumped
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetsCommitted,
    QuarantinedStateDropped,
    StaticMemberReplaced,
)
from streaming.explain.story.roster import Roster
from streaming.journal.folded_group import FoldedGroup, Known


class End(NamedTuple):
    """How a member's id stopped being one of the group: the entry, and the reason in words."""

    entry: JournalEntry
    reason: str


class PastGroup:
    """The group after the entries so far, which come in their order, each once.

    The offsets of plain commits are left out: no answer depends on them but that of ResetOffsets.
    """

    def __init__(self) -> None:
        self.roster = Roster()
        self.generation_began: JournalEntry | None = None
        """The entry with which the generation, or the epoch of a consumer group, began."""
        self.ended: JournalEntry | None = None
        """The entry that deleted the group last."""
        self.gone: dict[str, End] = {}
        """By member id."""
        self.taken: dict[str, JournalEntry] = {}
        """The entry with which the present member of each group instance id came."""
        self._folded = FoldedGroup()
        self._has_begun = False

    @property
    def group(self) -> Group | None:
        """None if it does not exist, or not yet."""
        return self._folded.group

    @property
    def is_known(self) -> bool:
        """Whether the entries tell every member that the group has."""
        return self._has_begun and self._folded.known is not Known.OFFSETS

    def begin(self, entry: JournalEntry) -> None:
        """Begin with another incarnation."""
        self._has_begun, self.generation_began = True, None
        self._folded.on_begin(entry)

    def miss(self, entry: JournalEntry) -> None:
        """Forget what may have changed in entries before this one that are missing."""
        self.generation_began = None
        self._folded.on_gap(entry)

    def apply(self, entry: JournalEntry) -> bool:
        """Apply the next entry; whether it changes what an answer depends on."""
        if type(entry.record) is OffsetsCommitted:
            if self.group is not None:
                self.group.sequence = entry.sequence
            return False
        self._note(entry)
        self._folded.apply(entry)
        return True

    def _note(self, entry: JournalEntry) -> None:
        record = entry.record
        self.roster.introduce(record)
        match record:
            case GroupCreated():
                self.generation_began = self.ended = None
            case GroupDeleted() | QuarantinedStateDropped():
                self.ended, self.generation_began = entry, None
            case GenerationStarted() | GroupEpochBumped():
                self.generation_began = entry
            case MemberAdded(member_id=member_id) | ConsumerMemberChanged(member_id=member_id):
                instance = record.group_instance_id
                is_member = self.group is not None and member_id in self.group.part.member_ids
                if instance is not None and (member_id in self.gone or not is_member):
                    self.taken[instance] = entry
                self.gone.pop(member_id, None)
            case StaticMemberReplaced(group_instance_id=instance, old_member_id=old):
                self.taken[instance] = entry
                self.gone[old] = End(entry, f"another process took its group instance id {instance}")
            case MemberRemoved(member_id=member_id, reason=reason):
                self.gone[member_id] = End(entry, reason)
