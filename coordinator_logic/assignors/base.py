"""The base class of assignors, and functions that several assignors share.

The leader of a group runs the assignor that the members voted for. KIP-429 describes the eager and the cooperative
protocol, by which members apply the resulting assignment.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple

from coordinator_logic.embedded_protocols.codec import Assignment, Subscription
from coordinator_logic.embedded_protocols.primitives import TopicPartition, java_order

PartitionsByMember = dict[str, list[TopicPartition]]
"""An assignment: the partitions of each member id."""


class GroupSubscription(NamedTuple):
    """A member from the leader's JoinGroup response, with its subscription decoded."""

    member_id: str
    group_instance_id: str | None
    subscription: Subscription


class TopicMetadata(NamedTuple):
    """The metadata of an existing topic that assignors use."""

    partitions: int
    racks: Sequence[frozenset[str]] = ()
    """The racks of each partition's replicas, by partition number (KIP-881); empty if unknown."""


class RebalanceProtocol(IntEnum):
    """What members do with their partitions during a rebalance. Members prefer the protocol of the highest number."""

    EAGER = 0
    """Revoke all partitions before joining."""
    COOPERATIVE = 1
    """Keep all partitions while joining; then revoke those that moved away, and rejoin if there were any."""


class Assignor(ABC):
    """Assigns partitions to the members of a group. Each consumer has its own instance."""

    name: ClassVar[str]
    """The protocol name that members list in JoinGroup."""
    supported_protocols: ClassVar[frozenset[RebalanceProtocol]] = frozenset({RebalanceProtocol.EAGER})

    @abstractmethod
    def assign(self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]) -> PartitionsByMember:
        """Compute the assignment of every member; a member without partitions has an empty list.

        The result depends only on the arguments, not on the instance's state nor on the order of ``members``.

        Args:
            topics: The existing topics by name. Topics without a subscriber are ignored, and so are subscribed topics
                that are not in it or have no partitions.
            members: The members with their subscriptions.
        """

    def subscription_user_data(self) -> bytes | None:
        """Return the user data of this consumer's next subscription, for the leader's assignor."""
        return None

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: B027
        """Receive the assignment of this consumer, and its generation."""


def common_rebalance_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """Return the highest protocol that all assignors of a consumer support.

    Raises:
        ValueError: there is no such protocol, or there are no assignors.
    """
    supported = [assignor.supported_protocols for assignor in assignors]
    common = frozenset.intersection(*supported) if supported else frozenset()
    if not common:
        raise ValueError("the assignors have no rebalance protocol in common")
    return max(common)


def assignable_topics(
    topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]
) -> dict[str, TopicMetadata]:
    """Return the existing topics that at least one member subscribes to, sorted by name."""
    subscribed = {topic for member in members for topic in member.subscription.topics}
    return {topic: topics[topic] for topic in sorted(subscribed & topics.keys(), key=java_order)}


def in_member_order(members: Iterable[GroupSubscription]) -> list[GroupSubscription]:
    """Sort static members by instance id, then dynamic members by member id.

    A static member that restarts gets a new member id but keeps its position, and so its partitions.
    """

    def order(member: GroupSubscription) -> tuple[bool, bytes]:
        instance_id = member.group_instance_id
        return instance_id is None, java_order(member.member_id if instance_id is None else instance_id)

    return sorted(members, key=order)


def topic_partitions(topics: Mapping[str, TopicMetadata]) -> Iterable[TopicPartition]:
    """Yield all partitions, by topic in the given order, then by partition number."""
    for topic, metadata in topics.items():
        for partition in range(metadata.partitions):
            yield TopicPartition(topic, partition)
