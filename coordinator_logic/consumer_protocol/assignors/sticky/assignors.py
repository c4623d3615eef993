"""The two sticky assignors: the same algorithms, told of the owned partitions in different ways.

They differ in what becomes of a partition that moves. ``sticky`` members have given everything up before
they joined, so it simply goes to its new member. ``cooperative-sticky`` members still work on it: it is left
out of everybody's assignment, its owner notices, gives it up and joins again, and only that next rebalance
hands it out (KIP-429).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator_logic.consumer_protocol.assignors.base import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicMetadata,
    assignable_topics,
)
from coordinator_logic.consumer_protocol.assignors.racks import RackInfo
from coordinator_logic.consumer_protocol.assignors.sticky.constrained import ConstrainedAssignmentBuilder
from coordinator_logic.consumer_protocol.assignors.sticky.general import GeneralAssignmentBuilder
from coordinator_logic.consumer_protocol.assignors.sticky.member_data import (
    MemberData,
    decode_generation,
    decode_owned_partitions,
    encode_generation,
    encode_owned_partitions,
)
from coordinator_logic.consumer_protocol.assignors.sticky.ownership import previous_owners, settle_ownership
from coordinator_logic.consumer_protocol.codec import NO_GENERATION, Assignment, Subscription
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order


class StickyAssignment(NamedTuple):
    """Who is to have what in the end, and which of it somebody else still has."""

    assignment: dict[str, list[TopicPartition]]
    partitions_transferring_ownership: dict[TopicPartition, str]
    """The new member of each partition that was taken from another one, or that several claim to have."""


class AbstractStickyAssignor(Assignor):
    """Balance first, then leave partitions where they are.

    Sizes differ by one at most, or no partition could move to a subscriber with at least two fewer. Where
    Kafka's result depends on the order of a hash map, members are taken by member id here.
    """

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData:
        """What the subscription says its member owns."""

    def assign_partitions(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> StickyAssignment:
        """The balanced assignment, as if every partition could change hands at once."""
        if not members:
            return StickyAssignment({}, {})
        topics = assignable_topics(topics, members)
        racks = RackInfo(topics, members)
        by_member_id = sorted(members, key=lambda member: java_order(member.member_id))
        subscribed = {member.member_id: frozenset(member.subscription.topics) for member in by_member_id}
        claims = {member.member_id: self.member_data(member.subscription) for member in by_member_id}
        ownership = settle_ownership(topics, claims)
        if len(set(subscribed.values())) == 1:
            assignment = ConstrainedAssignmentBuilder(topics, racks, ownership.owned).build()
        else:
            assignment = GeneralAssignmentBuilder(
                topics, racks, subscribed, ownership.owned, previous_owners(claims)
            ).build()
        return StickyAssignment(assignment, ownership.transferring_to_others(assignment))


class StickyAssignor(AbstractStickyAssignor):
    """Kafka's ``sticky``. What a member owns stands in its user data, and nowhere else is looked."""

    name = "sticky"

    def __init__(self) -> None:
        self._last_assignment: MemberData | None = None

    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        return self.assign_partitions(topics, members).assignment

    def member_data(self, subscription: Subscription) -> MemberData:
        return decode_owned_partitions(subscription.user_data)

    def subscription_user_data(self) -> bytes | None:
        return None if self._last_assignment is None else encode_owned_partitions(*self._last_assignment)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._last_assignment = MemberData(assignment.partitions, generation_id)


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Kafka's ``cooperative-sticky``. What a member owns stands in its subscription's own fields."""

    name = "cooperative-sticky"
    supported_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment, transferring = self.assign_partitions(topics, members)
        return {
            member: [partition for partition in partitions if partition not in transferring]
            for member, partitions in assignment.items()
        }

    def member_data(self, subscription: Subscription) -> MemberData:
        generation = subscription.generation_id
        if generation < 0:
            generation = decode_generation(subscription.user_data)
        return MemberData(subscription.owned_partitions, generation)

    def subscription_user_data(self) -> bytes | None:
        return encode_generation(self._generation)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._generation = generation_id
