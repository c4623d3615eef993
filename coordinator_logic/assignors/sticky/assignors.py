"""The two sticky assignors, which use the same algorithms but differ in the rebalance protocol.

``sticky`` members have revoked all partitions before they joined, so a partition that moves is assigned to its new
member at once. ``cooperative-sticky`` members still consume it: no member is assigned the partition until its owner has
revoked it and rejoined; the next rebalance assigns it to the new member (KIP-429).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator_logic.assignors.base import (
    Assignor,
    GroupSubscription,
    PartitionsByMember,
    RebalanceProtocol,
    TopicMetadata,
    assignable_topics,
)
from coordinator_logic.assignors.racks import RackInfo
from coordinator_logic.assignors.sticky.claims import (
    MemberData,
    decode_generation,
    decode_owned_partitions,
    encode_generation,
    encode_owned_partitions,
    previous_owners,
    resolve_ownership,
)
from coordinator_logic.assignors.sticky.constrained import ConstrainedAssignmentBuilder
from coordinator_logic.assignors.sticky.general import GeneralAssignmentBuilder
from coordinator_logic.embedded_protocols.codec import NO_GENERATION, Assignment, Subscription
from coordinator_logic.embedded_protocols.primitives import TopicPartition, java_order


class StickyAssignment(NamedTuple):
    """The final assignment, and the partitions in it that another member still owns."""

    assignment: PartitionsByMember
    partitions_transferring_ownership: dict[TopicPartition, str]
    """The new member of each partition that another member owns or that several members claim."""


class AbstractStickyAssignor(Assignor):
    """Computes the most balanced assignment that moves as few partitions as possible.

    Balanced means that the members' numbers of partitions differ by at most one, or that no partition can move to a
    subscriber with at least two fewer. Where Kafka's result depends on the order of a hash map, members are processed
    in the order of their ids here.
    """

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData:
        """Return the partitions that the member claims to own, and their generation."""

    def assign_partitions(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> StickyAssignment:
        """Compute the balanced assignment without regard to partitions that must be revoked first."""
        if not members:
            return StickyAssignment({}, {})
        topics = assignable_topics(topics, members)
        racks = RackInfo(topics, members)
        by_member_id = sorted(members, key=lambda member: java_order(member.member_id))
        subscribed = {member.member_id: frozenset(member.subscription.topics) for member in by_member_id}
        claims = {member.member_id: self.member_data(member.subscription) for member in by_member_id}
        ownership = resolve_ownership(topics, claims)
        if len(set(subscribed.values())) == 1:
            assignment = ConstrainedAssignmentBuilder(topics, racks, ownership.owned).build()
        else:
            assignment = GeneralAssignmentBuilder(
                topics, racks, subscribed, ownership.owned, previous_owners(claims)
            ).build()
        return StickyAssignment(assignment, ownership.transferring_to_others(assignment))


class StickyAssignor(AbstractStickyAssignor):
    """Kafka's ``sticky``. Members list their owned partitions in the user data of their subscriptions."""

    name = "sticky"

    def __init__(self) -> None:
        self._last_assignment: MemberData | None = None

    def assign(self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]) -> PartitionsByMember:
        return self.assign_partitions(topics, members).assignment

    def member_data(self, subscription: Subscription) -> MemberData:
        return decode_owned_partitions(subscription.user_data)

    def subscription_user_data(self) -> bytes | None:
        return None if self._last_assignment is None else encode_owned_partitions(*self._last_assignment)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._last_assignment = MemberData(assignment.partitions, generation_id)


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Kafka's ``cooperative-sticky``. Members list their owned partitions in the fields of their subscriptions."""

    name = "cooperative-sticky"
    supported_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def assign(self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]) -> PartitionsByMember:
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
