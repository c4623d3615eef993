"""Settles who owns what before anything is assigned, from what the members say.

A member that missed a rebalance still reports what has been given to somebody else since. The claim of the
newest generation counts. If two members claim a partition in the same generation, neither can be trusted
with it (KIP-341), and nobody owns it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_logic.consumer_protocol.assignors.base import TopicMetadata
from coordinator_logic.consumer_protocol.assignors.sticky.member_data import MemberData
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who has a right to keep what."""

    owned: dict[str, list[TopicPartition]]
    """Every member, in the order given, with the partitions that are its own."""
    claimed_by_several: frozenset[TopicPartition]
    """Partitions that nobody owns because more than one member claims them in the same generation."""

    def transferring_to_others(self, assignment: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
        """The new member of each partition that somebody else has to give up first."""
        owner = {partition: member for member, partitions in self.owned.items() for partition in partitions}
        return {
            partition: member
            for member, partitions in assignment.items()
            for partition in partitions
            if owner.get(partition, member) != member or partition in self.claimed_by_several
        }


def settle_ownership(topics: Mapping[str, TopicMetadata], claims: Mapping[str, MemberData]) -> Ownership:
    """Owned partitions by member, from each member's claim. Partitions that do not exist are nobody's."""
    newest: dict[TopicPartition, tuple[int, list[str]]] = {}
    for member, claim in claims.items():
        # A partition that one member lists twice is not claimed by two.
        for partition in dict.fromkeys(claim.partitions):
            topic = topics.get(partition.topic)
            if topic is None or not 0 <= partition.partition < topic.partitions:
                continue
            generation, claimants = newest.get(partition, (claim.generation, []))
            if claim.generation > generation:
                newest[partition] = (claim.generation, [member])
            elif claim.generation == generation:
                newest[partition] = (generation, [*claimants, member])

    owned: dict[str, list[TopicPartition]] = {member: [] for member in claims}
    for partition, (_, claimants) in newest.items():
        if len(claimants) == 1:
            owned[claimants[0]].append(partition)
    several = frozenset(partition for partition, (_, claimants) in newest.items() if len(claimants) > 1)
    return Ownership(owned, several)


def previous_owners(claims: Mapping[str, MemberData]) -> dict[TopicPartition, str]:
    """The last owner of each partition before the newest generation, as far as stale members remember."""
    newest = max((claim.generation for claim in claims.values()), default=0)
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member, (partitions, generation) in claims.items():
        if generation == newest:
            continue
        for partition in partitions:
            if partition not in latest or generation > latest[partition][0]:
                latest[partition] = (generation, member)
    return {partition: member for partition, (_, member) in latest.items()}
