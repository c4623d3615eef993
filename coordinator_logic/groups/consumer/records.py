"""The records of what changes in a consumer group.

They correspond to the records of a broker's coordinator, except that a broker reads topics from its own metadata.
"""

from typing import ClassVar

from coordinator_logic.group.record import Record
from coordinator_logic.groups.consumer.members import AssignedPartitions, ConsumerMember
from coordinator_logic.messages import Message, Protocol, TopicDescription

FIRST_EPOCH = 1
"""The epoch of a group without members and of its empty target; the first member's join makes it 2, as in Kafka."""


class ConsumerGroupFormed(Record, frozen=True):
    """The group, which is new or was a classic one, is a consumer group from now on, with this epoch."""

    changes_retention: ClassVar[bool] = True

    epoch: int = FIRST_EPOCH
    reason: str = ""


class ClassicMember(Message, frozen=True):
    """What a member that speaks the classic protocol has brought with JoinGroup."""

    session_timeout_ms: int
    protocols: list[Protocol]


class ConsumerMemberChanged(Record, frozen=True):
    """A member joined a consumer group, or changed its subscription or itself; these are all its fields.

    ``classic`` is null for a member that speaks the consumer group protocol.
    """

    changes_retention: ClassVar[bool] = True

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str
    server_assignor: str | None
    classic: ClassicMember | None = None


class TopicsChanged(Record, frozen=True):
    """The group learned that topics exist, have more partitions or another id, or that they were deleted."""

    described: list[TopicDescription]
    deleted: list[str]


class PatternsResolved(Record, frozen=True):
    """The topics that each pattern of the group matches."""

    patterns: dict[str, list[str]]


class GroupEpochBumped(Record, frozen=True):
    """The group needs a new target assignment; ``metadata_hash`` stands for the topics to which it subscribes."""

    changes_retention: ClassVar[bool] = True

    epoch: int
    metadata_hash: str
    reason: str


class TargetAssignmentChanged(Record, frozen=True):
    """An assignor computed the target for a group epoch.

    ``targets`` has the members whose target changed: by member id, topic id, the partitions. ``assignor`` is null if
    they are the assignment of a classic group, which the group was before.
    """

    epoch: int
    assignor: str | None
    targets: dict[str, dict[str, list[int]]]


class MemberAssignmentChanged(Record, frozen=True):
    """A member made a step towards its target, left for a while (epoch -2), or was converted.

    ``assigned`` and ``pending_revocation`` give by topic id and partition the member epoch at which the member got it.
    """

    member_id: str
    epoch: int
    previous_epoch: int
    state: str
    assigned: AssignedPartitions
    pending_revocation: AssignedPartitions
    reason: str


def member_record(member: ConsumerMember) -> ConsumerMemberChanged:
    """The record of a member's fields other than its assignment."""
    classic = member.classic
    return ConsumerMemberChanged(
        member.member_id,
        member.group_instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        list(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        member.server_assignor,
        None if classic is None else ClassicMember(classic.session_timeout_ms, list(classic.protocols)),
    )


def assignment_record(member: ConsumerMember, reason: str) -> MemberAssignmentChanged:
    """The record of a member's epochs and partitions."""
    return MemberAssignmentChanged(
        member.member_id,
        member.epoch,
        member.previous_epoch,
        member.state.value,
        member.assigned,
        member.pending_revocation,
        reason,
    )
