"""What every assignor is: a name to vote for, and a function from members and partitions to assignments.

The leader of a group runs the assignor that the group voted for over all members' subscriptions (KIP-429
describes the two ways in which members may go along with the result).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple

from coordinator_logic.consumer_protocol.codec import Assignment, Subscription
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order


class GroupSubscription(NamedTuple):
    """One member as the leader sees it in its JoinGroup response, its metadata decoded."""

    member_id: str
    group_instance_id: str | None
    subscription: Subscription


class TopicMetadata(NamedTuple):
    """What an assignor has to know of a topic that exists."""

    partitions: int
    racks: Sequence[frozenset[str]] = ()
    """For each partition, by number, the racks of its replicas (KIP-881); empty when racks are not known."""


class RebalanceProtocol(IntEnum):
    """What members do with their partitions around a rebalance; the higher, the better for the member."""

    EAGER = 0
    """Give everything up before joining."""
    COOPERATIVE = 1
    """Keep everything while joining, give up what the result lacks, and join again if there was any."""


class Assignor(ABC):
    """A way to spread partitions over the members of a group. One object serves one consumer."""

    name: ClassVar[str]
    """The protocol name that members list in JoinGroup."""
    supported_protocols: ClassVar[frozenset[RebalanceProtocol]] = frozenset({RebalanceProtocol.EAGER})

    @abstractmethod
    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Partitions for every member id in ``members``; an empty list for who gets none.

        ``topics`` may hold some that nobody wants; a subscribed topic that it lacks, or
        that has no partitions, is left out. The result depends on the arguments only, not on what this
        object was told before nor on the order of ``members``.
        """

    def subscription_user_data(self) -> bytes | None:
        """What this consumer's next subscription should carry for the assignor that will read it."""
        return None

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: B027
        """Tells the assignor what its own consumer was given, and in which generation."""


def common_rebalance_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """The protocol that a consumer follows whichever of its assignors the group votes for.

    Raises:
        ValueError: there is none, or there are no assignors.
    """
    supported = [assignor.supported_protocols for assignor in assignors]
    common = frozenset.intersection(*supported) if supported else frozenset()
    if not common:
        raise ValueError("the assignors have no rebalance protocol in common")
    return max(common)


def assignable_topics(
    topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]
) -> dict[str, TopicMetadata]:
    """The topics that exist and that somebody subscribes to, by name."""
    subscribed = {topic for member in members for topic in member.subscription.topics}
    return {topic: topics[topic] for topic in sorted(subscribed & topics.keys(), key=java_order)}


def in_member_order(members: Iterable[GroupSubscription]) -> list[GroupSubscription]:
    """Static members by instance id, then dynamic ones by member id.

    A static member keeps its place when it restarts under a new member id, and so keeps its partitions.
    """

    def order(member: GroupSubscription) -> tuple[bool, bytes]:
        instance_id = member.group_instance_id
        return instance_id is None, java_order(member.member_id if instance_id is None else instance_id)

    return sorted(members, key=order)


def topic_partitions(topics: Mapping[str, TopicMetadata]) -> Iterable[TopicPartition]:
    """Every partition, topic by topic in the order given, lowest number first."""
    for topic, metadata in topics.items():
        for partition in range(metadata.partitions):
            yield TopicPartition(topic, partition)
