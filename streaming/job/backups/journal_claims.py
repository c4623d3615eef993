"""What the journal says of a group, compared with the group's stored state.

A journal that retention has cut can say less: the members that joined and the offsets that were committed before its
first entry are unknown. So its entries are folded into claims, each of one field, member or partition; what no entry
mentions is not compared. A journal with all entries of a group also claims that there is nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import ClassicGroupFormed, GenerationStarted, MemberAdded, StateChanged
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, ConsumerMemberChanged, GroupEpochBumped
from coordinator_logic.records import (
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    RequestCause,
    StaticMemberReplaced,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    stored_offset,
)
from streaming.journal.fold import GroupFold, JournalFold, Observer

Place = tuple[str, int]
"""A topic and a partition."""


class GroupClaims:
    """The claims of one group's entries, which are applied in order, each once."""

    def __init__(self, first: int) -> None:
        self.is_complete = first == 1
        """Whether all entries of the group are there."""
        self.sequence = first - 1
        self._generation: int | None = None
        self._state: str | None = None
        self._members: dict[str, bool] = {}
        self._offsets: dict[Place, CommittedOffset | None] = {}
        self._pending: dict[int, dict[Place, CommittedOffset]] = {}

    def apply(self, entry: JournalEntry) -> None:
        """Add what an entry claims. Mirrors :func:`coordinator_logic.records.apply`."""
        self.sequence = entry.sequence
        match entry.record:
            case StateChanged(to_state=to_state):
                self._state = to_state
            case GenerationStarted(generation=generation):
                self._generation = generation
            case ConsumerGroupFormed(epoch=epoch) | GroupEpochBumped(epoch=epoch):
                # The state of a consumer group follows from its members, which are not compared so closely.
                self._generation, self._state = epoch, None
            case ClassicGroupFormed():
                self._generation = 0
            case MemberAdded(member_id=member_id) | ConsumerMemberChanged(member_id=member_id):
                self._members[member_id] = True
            case MemberRemoved(member_id=member_id):
                self._members[member_id] = False
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                self._members |= {old: False, new: True}
            case OffsetsCommitted(offsets=committed):
                self._offsets |= _positions(committed, entry.sequence)
            case TransactionalOffsetsCommitted(producer_id=producer_id, offsets=committed):
                self._pending.setdefault(producer_id, {}).update(_positions(committed, entry.sequence))
            case TransactionEnded(producer_id=producer_id, committed=is_committed):
                self._end_transaction(producer_id, is_committed)
            case OffsetsDeleted(offsets=deleted):
                self._delete(deleted)
            case _:
                # The other records change what is not compared.
                pass

    def differences(self, group: Group) -> Iterator[str]:
        """What the state says otherwise than these claims; ``group`` is as of the last applied entry."""
        if self._generation is not None and group.generation != self._generation:
            yield f"generation {group.generation}, in the journal {self._generation}"
        if self._state is not None and group.state.value != self._state:
            yield f"state {group.state.value}, in the journal {self._state}"
        members = group.part.member_ids
        for member_id in sorted({*self._members, *(members if self.is_complete else ())}):
            claimed = self._members.get(member_id, False)
            if claimed != (member_id in members):
                yield f"member {member_id} is in the {'journal' if claimed else 'state'} only"
        stored = {(topic, partition): offset for topic, partition, offset in group.committed_offsets()}
        for place in sorted({*self._offsets, *(stored if self.is_complete else ())}):
            claim, found = self._offsets.get(place), stored.get(place)
            if _position(claim) != _position(found):
                yield f"offset of {place[0]}-{place[1]}: {_shown(found)}, in the journal {_shown(claim)}"

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        # Offsets from before the first entry are not known. They are older than all that is claimed.
        for place, pending in self._pending.pop(producer_id, {}).items():
            existing = self._offsets.get(place)
            if is_committed and (existing is None or pending.sequence > existing.sequence):
                self._offsets[place] = pending

    def _delete(self, deleted: Iterable[TopicPartitions]) -> None:
        for each in deleted:
            for place in ((each.topic, partition) for partition in each.partitions):
                # An offset from before the first entry may be of another topic of that name: nothing is claimed then.
                existing = self._offsets.get(place)
                if (existing is not None and existing.is_of(each.topic_id)) or not each.topic_id:
                    self._offsets[place] = None
                for pending in self._pending.values():
                    if place in pending and pending[place].is_of(each.topic_id):
                        del pending[place]


class _GroupComparison(Observer):
    """Compares the entries of one group with its state.

    Args:
        place: The incarnation and the sequence number of the group in the state; an empty incarnation without one.
        read: As of :class:`JournalComparison`.
    """

    def __init__(self, place: tuple[str, int], read: Mapping[int, int]) -> None:
        self.claims: GroupClaims | None = None
        self.found: str | None = None
        """A difference in the entries, whatever they claim."""
        self.living: str | None = None
        """The incarnation that existed when the batch ended, and that the state does not have."""
        self._incarnation, self._sequence = place
        self._read = read

    def on_gap(self, entry: JournalEntry) -> None:
        """Note that the journal lacks entries that the state has."""
        claims = self.claims
        if self._claims_of_state(entry) and claims is not None and claims.sequence < entry.sequence - 1:
            self.found = self.found or f"the journal lacks entries {claims.sequence + 1} to {entry.sequence - 1}"

    def on_entry(self, entry: JournalEntry) -> None:
        if entry.incarnation != self._incarnation:
            self._note_life(entry)
        elif self._claims_of_state(entry):
            self.claims = self.claims or GroupClaims(entry.sequence)
            self.claims.apply(entry)
        elif self._was_read(entry):
            self.found = (
                f"the state ends at entry {self._sequence}, the journal has entry {entry.sequence} of a request that "
                "the batch has read"
            )

    def differences(self, group: Group) -> Iterator[str]:
        """What the state says otherwise of the group than the journal."""
        if self.found is not None:
            yield self.found
        if self.claims is None:
            return
        if self.claims.sequence < group.sequence:
            yield f"the state ends at entry {group.sequence}, the journal at entry {self.claims.sequence}"
        else:
            yield from self.claims.differences(group)

    def _claims_of_state(self, entry: JournalEntry) -> bool:
        """Whether an entry claims something of the group as of the state."""
        return entry.incarnation == self._incarnation and entry.sequence <= self._sequence

    def _note_life(self, entry: JournalEntry) -> None:
        """Note whether an incarnation that the state does not have existed when the batch ended."""
        ends = isinstance(entry.record, GroupDeleted | QuarantinedStateDropped)
        was_read = self._was_read(entry)
        # A timer has no place in the log: a group that has expired may be gone before or after the batch.
        if ends and (was_read or not isinstance(entry.cause, RequestCause)):
            if self.living == entry.incarnation:
                self.living = None
        elif was_read:
            self.living = entry.incarnation

    def _was_read(self, entry: JournalEntry) -> bool:
        cause = entry.cause
        return isinstance(cause, RequestCause) and cause.offset < self._read.get(cause.partition, 0)


class JournalComparison:
    """Compares a journal, entry by entry, with the groups of a state.

    Args:
        positions: The incarnation and the sequence number of each group in the state.
        read: The offset after the last request that the state's batch has read, by partition. The requests topic must
            be the one that the batch has read.
    """

    def __init__(self, positions: Mapping[str, tuple[str, int]], read: Mapping[int, int]) -> None:
        def begin(group_id: str) -> GroupFold[_GroupComparison]:
            return GroupFold(_GroupComparison(positions.get(group_id, ("", 0)), read))

        self._journal = JournalFold(begin)

    @property
    def entries(self) -> int:
        """How many entries were added."""
        return self._journal.entries

    def add(self, entry: JournalEntry) -> None:
        """Add the next entry of the journal; the entries of a group are in order, and may repeat."""
        self._journal.add(entry)

    def is_complete(self, group_id: str) -> bool | None:
        """Whether the journal has every entry of a group in the state; None if it has none."""
        compared = self._of(group_id)
        return None if compared is None or compared.claims is None else compared.claims.is_complete

    def differences_of(self, group: Group) -> Iterator[str]:
        """What the state says otherwise of a group than the journal."""
        compared = self._of(group.group_id)
        return iter(()) if compared is None else compared.differences(group)

    def missing(self) -> dict[str, str]:
        """The groups that existed when the batch ended, and that the state does not have, with their incarnation."""
        living = {group_id: fold.observer.living for group_id, fold in self._journal.groups.items()}
        return {group_id: incarnation for group_id, incarnation in living.items() if incarnation is not None}

    def _of(self, group_id: str) -> _GroupComparison | None:
        fold = self._journal.groups.get(group_id)
        return None if fold is None else fold.observer


def _positions(committed: list[OffsetCommitted], sequence: int) -> dict[Place, CommittedOffset]:
    return {(each.topic, each.partition): stored_offset(each, sequence) for each in committed}


def _position(committed: CommittedOffset | None) -> tuple[object, ...] | None:
    """What is compared; snapshots of older releases lack the sequence number."""
    if committed is None:
        return None
    return committed.offset, committed.leader_epoch, committed.metadata, committed.commit_timestamp


def _shown(committed: CommittedOffset | None) -> str:
    return (
        "none" if committed is None else f"{committed.offset} of {committed.commit_timestamp} ({committed.metadata!r})"
    )
