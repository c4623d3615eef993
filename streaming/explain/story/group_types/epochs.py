"""A consumer group (KIP-848) as its journal tells of it: its epochs, and how far each member has got."""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.group.record import Record
from coordinator_logic.groups.consumer.members import AssignedPartitions, MemberState
from coordinator_logic.groups.consumer.records import (
    ConsumerMemberChanged,
    GroupEpochBumped,
    MemberAssignmentChanged,
    TargetAssignmentChanged,
    TopicsChanged,
)
from coordinator_logic.records import MemberRemoved, StaticMemberReplaced
from coordinator_logic.states import State
from streaming.explain.story.model import Partitions
from streaming.explain.story.moves import Owners


class MemberEpochs(NamedTuple):
    """A member's epoch, its state, and its partitions by topic id; ``since`` is when it entered the state, in ms."""

    epoch: int
    state: str
    assigned: AssignedPartitions
    pending: AssignedPartitions
    since: int

    @property
    def must_revoke(self) -> bool:
        """Whether it must give partitions up before it gets others."""
        return self.state == MemberState.UNREVOKED_PARTITIONS.value


def _new(time: int) -> MemberEpochs:
    return MemberEpochs(0, MemberState.STABLE.value, {}, {}, time)


class Epochs:
    """The epochs of a group and its members, as far as the records tell.

    ``epoch`` is that of a group without members, None if the records begin later than the group.
    """

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self.target_epoch = epoch
        self._is_complete = epoch is not None
        self.members: dict[str, MemberEpochs] = {}
        self._late: set[str] = set()
        """Members that have not reached the target: to look at all of them for each record would take long."""
        self._topics: dict[str, str] = {}

    def change(self, record: Record, timestamp: int) -> None:
        """Change the epochs as a record of this time does."""
        match record:
            case ConsumerMemberChanged(member_id=member_id):
                if member_id not in self.members:
                    self._put(member_id, _new(timestamp))
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                one = self.members.get(old, _new(timestamp))
                self._remove(old)
                self._put(new, one._replace(epoch=0))
            case MemberRemoved(member_id=member_id):
                self._remove(member_id)
            case GroupEpochBumped(epoch=epoch):
                self.epoch = epoch
            case TargetAssignmentChanged(epoch=epoch):
                self.target_epoch = epoch
                for member_id, one in self.members.items():
                    self._put(member_id, one)
            case TopicsChanged(described=described):
                self._topics.update({topic.topic_id: topic.name for topic in described})
            case MemberAssignmentChanged(member_id=member_id):
                before = self.members.get(member_id)
                stays = before is not None and before.state == record.state
                since = before.since if before is not None and stays else timestamp
                self._put(
                    member_id,
                    MemberEpochs(record.epoch, record.state, record.assigned, record.pending_revocation, since),
                )

    def _put(self, member_id: str, member: MemberEpochs) -> None:
        self.members[member_id] = member
        if self.has_arrived(member):
            self._late.discard(member_id)
        else:
            self._late.add(member_id)

    def _remove(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self._late.discard(member_id)

    @property
    def state(self) -> State | None:
        """The group's state (KIP-848, "Group States"); None if it depends on members that the records do not name."""
        if not self.members:
            return State.EMPTY if self._is_complete else None
        if self._awaits_target:
            return State.ASSIGNING
        if self._late:
            return State.RECONCILING
        return State.STABLE if self._is_complete else None

    @property
    def is_settled(self) -> bool:
        """Whether all members that the records name have reached the newest epoch."""
        if not self.members:
            return self._is_complete
        return not self._awaits_target and not self._late

    @property
    def _awaits_target(self) -> bool:
        return self.epoch is not None and (self.target_epoch is None or self.epoch > self.target_epoch)

    def has_arrived(self, member: MemberEpochs) -> bool:
        """Whether a member has reached the group's target, as far as that is known."""
        return member.state == MemberState.STABLE.value and self.target_epoch in (None, member.epoch)

    @property
    def owners(self) -> Owners:
        """The member to which each partition is assigned; one that is being revoked has none."""
        return {place: member for member, one in self.members.items() for place in self._places(one.assigned)}

    def held_by(self, member_id: str) -> frozenset[TopicPartition]:
        """The partitions that no other member may get: those that are assigned to a member, or that it is to revoke."""
        one = self.members[member_id]
        return frozenset([*self._places(one.assigned), *self._places(one.pending)])

    def named(self, partitions: AssignedPartitions) -> Partitions:
        """Partitions by the names of their topics."""
        return grouped_by_topic(sorted(self._places(partitions)))

    def _places(self, partitions: AssignedPartitions) -> Iterator[TopicPartition]:
        # A topic that the journal does not name has its id for a name.
        for topic_id, numbers in partitions.items():
            for number in numbers:
                yield TopicPartition(self._topics.get(topic_id, topic_id), number)
