"""What the journal says about members of consumer groups, and whether epochs and partitions are in order there."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_logic.group.timer import HEARTBEAT
from coordinator_logic.groups.classic.records import ClassicGroupFormed
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_logic.groups.consumer.members import AssignedPartitions, MemberState
from coordinator_logic.groups.consumer.records import (
    ConsumerGroupFormed,
    ConsumerMemberChanged,
    GroupEpochBumped,
    MemberAssignmentChanged,
    TargetAssignmentChanged,
    TopicsChanged,
)
from coordinator_logic.groups.consumer.timers import REVOCATION
from coordinator_logic.records import (
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    QuarantinedStateDropped,
    RequestCause,
    StaticMemberReplaced,
    TimerCause,
)
from tests.recovery.checker.history import Key
from tests.recovery.checker.operations import Rule, Violation


class Standing(NamedTuple):
    """A member's epochs, and by partition the epoch at which it got it; it has yet to revoke the ``pending`` ones."""

    epoch: int = JOIN_EPOCH
    assigned: Mapping[Key, int] = {}
    pending: Mapping[Key, int] = {}
    state: str = MemberState.STABLE.value
    previous_epoch: int = JOIN_EPOCH

    @property
    def held(self) -> set[Key]:
        """What no other member may have."""
        return self.assigned.keys() | self.pending.keys()

    def may_send(self, epoch: int, owned: Collection[Key] | None) -> bool:
        """Whether a heartbeat in an epoch is accepted: the previous one if it owns nothing else than is assigned."""
        lost_answer = epoch == self.previous_epoch and owned is not None and self.assigned.keys() >= set(owned)
        return epoch in (JOIN_EPOCH, self.epoch) or lost_answer

    def may_commit(self, epoch: int, key: Key) -> bool:
        """Whether a commit of a partition is accepted in an epoch (KIP-1251)."""
        since = self.assigned.get(key, self.pending.get(key))
        return epoch == self.epoch or (since is not None and since <= epoch < self.epoch)


@dataclass(slots=True)
class ConsumerStory:
    """What the journal says of all consumer groups.

    told: by member id, each epoch that it had with the partitions that were assigned to it. committed: by correlation
    id, the standing of the committing member; None without a member. standings_after: by correlation id, the standing
    that the sender had from that request on. removed_by: by member id, the timers that have removed it.
    """

    told: dict[str, set[tuple[int, frozenset[Key]]]] = field(default_factory=dict)
    committed: dict[str, Standing | None] = field(default_factory=dict)
    standings_after: dict[str, Standing] = field(default_factory=dict)
    removed_by: dict[str, set[str]] = field(default_factory=dict)

    def had_epoch(self, member: str, epoch: int) -> bool:
        """Whether a member has ever been in an epoch."""
        return any(had == epoch for had, _ in self.told.get(member, ()))

    def is_late(self, member: str) -> bool:
        """Whether a member was removed because it did not revoke, join or sync in time."""
        return bool(self.removed_by.get(member, set()) - {HEARTBEAT})


class ConsumerGroupWalk:
    """Goes through the entries of a group, and adds what they say to the story.

    ``epoch`` is the group epoch, None while the group is not a consumer group.
    """

    def __init__(self, story: ConsumerStory, group: str) -> None:
        self.epoch: int | None = None
        self._story = story
        self._group = group
        self._target_epoch = 0
        self._members: dict[str, Standing] = {}
        self._names: dict[str, str] = {}

    def follow(self, entry: JournalEntry) -> Iterator[Violation]:
        """Take an entry; yields what is wrong with it."""
        record = entry.record
        match record:
            case ConsumerGroupFormed():
                self.epoch = self._target_epoch = record.epoch
                self._members = {}
            case ClassicGroupFormed() | GroupDeleted() | QuarantinedStateDropped():
                self.epoch, self._members = None, {}
            case TopicsChanged():
                self._names |= {topic.topic_id: topic.name for topic in record.described}
            case GroupEpochBumped():
                yield from self._bump(record)
            case TargetAssignmentChanged():
                yield from self._set_target(record)
            case ConsumerMemberChanged():
                self._members.setdefault(record.member_id, Standing())
            case MemberAssignmentChanged():
                yield from self._step(entry, record)
            case MemberRemoved() if self.epoch is not None:
                yield from self._remove(entry, record)
            case StaticMemberReplaced() if self.epoch is not None:
                old = self._members.pop(record.old_member_id, Standing())
                self._members[record.new_member_id] = old._replace(epoch=JOIN_EPOCH)

    def committed(self, cause: RequestCause) -> None:
        """Remember who has committed."""
        self._story.committed[cause.correlation_id] = self._members.get(cause.member_id)

    def _wrong(self, rule: Rule, what: str) -> Violation:
        return Violation(rule, self._group, f"in the journal, {what}")

    def _bump(self, record: GroupEpochBumped) -> Iterator[Violation]:
        former, self.epoch = self.epoch or 0, record.epoch
        if record.epoch < former:
            yield self._wrong(Rule.GENERATIONS_GO_AHEAD, f"group epoch {record.epoch} follows {former}")
        elif record.epoch > former + 1:
            yield self._wrong(Rule.UNBROKEN_JOURNAL, f"group epoch {record.epoch} follows {former}")

    def _set_target(self, record: TargetAssignmentChanged) -> Iterator[Violation]:
        former, self._target_epoch = self._target_epoch, record.epoch
        if record.epoch < former:
            yield self._wrong(Rule.GENERATIONS_GO_AHEAD, f"target epoch {record.epoch} follows {former}")
        if record.epoch != self.epoch:
            what = f"a target of epoch {record.epoch} was computed in group epoch {self.epoch}"
            yield self._wrong(Rule.UNBROKEN_JOURNAL, what)

    def _step(self, entry: JournalEntry, record: MemberAssignmentChanged) -> Iterator[Violation]:
        member = record.member_id
        former = self._members.get(member, Standing())
        assigned, pending = self._named(record.assigned), self._named(record.pending_revocation)
        standing = self._members[member] = Standing(
            record.epoch, assigned, pending, record.state, record.previous_epoch
        )
        self._story.told.setdefault(member, set()).add((record.epoch, frozenset(assigned)))
        if isinstance(entry.cause, RequestCause) and entry.cause.member_id == member:
            self._story.standings_after[entry.cause.correlation_id] = standing
        if record.epoch != STATIC_LEAVE_EPOCH and record.epoch < former.epoch:
            what = f"epoch {record.epoch} of {member} follows {former.epoch}"
            yield self._wrong(Rule.GENERATIONS_GO_AHEAD, what)
        if record.epoch > self._target_epoch:
            what = f"{member} is in epoch {record.epoch} when the target is of {self._target_epoch}"
            yield self._wrong(Rule.UNBROKEN_JOURNAL, what)
        for other, its in self._members.items():
            if other != member and (both := its.held & standing.held):
                yield self._wrong(Rule.ONE_OWNER, f"{sorted(both)} belong to {other} and {member}")

    def _named(self, partitions: AssignedPartitions) -> dict[Key, int]:
        return {
            (self._names.get(topic_id, topic_id), partition): epoch
            for topic_id, epochs in partitions.items()
            for partition, epoch in epochs.items()
        }

    def _remove(self, entry: JournalEntry, record: MemberRemoved) -> Iterator[Violation]:
        standing = self._members.pop(record.member_id, Standing())
        if not isinstance(entry.cause, TimerCause):
            return
        self._story.removed_by.setdefault(record.member_id, set()).add(entry.cause.timer)
        is_revoking = standing.state == MemberState.UNREVOKED_PARTITIONS.value
        if entry.cause.timer == REVOCATION and not is_revoking:
            what = f"{record.member_id} was removed as one that must revoke partitions, and need not"
            yield self._wrong(Rule.LIVE_MEMBERS_STAY, what)
