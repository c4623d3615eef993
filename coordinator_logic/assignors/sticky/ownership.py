"""Resolve the members' claims to partitions before partitions are assigned.

A member that missed a rebalance still claims partitions that other members have been assigned since. The claim with
the highest generation is valid. If several members claim a partition in the same generation, none of them owns it
(KIP-341).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_logic.assignors.base import TopicMetadata
from coordinator_logic.assignors.sticky.member_data import MemberData
from coordinator_logic.embedded_protocols.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owners of partitions before an assignment."""

    owned: dict[str, list[TopicPartition]]
    """The owned partitions of every member, in the given order of members."""
    claimed_by_several: frozenset[TopicPartition]
    """Partitions that no member owns because several claim them in the same generation."""

    def transferring_to_others(self, assignment: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
        """Return the new member of each partition that another member must revoke first."""
        owner = {partition: member for member, partitions in self.owned.items() for partition in partitions}
        return {
            partition: member
            for member, partitions in assignment.items()
            for partition in partitions
            if owner.get(partition, member) != member or partition in self.claimed_by_several
        }


def resolve_ownership(topics: Mapping[str, TopicMetadata], claims: Mapping[str, MemberData]) -> Ownership:
    """Determine the owned partitions of every member from the claims; ignore partitions that do not exist."""
    newest: dict[TopicPartition, tuple[int, list[str]]] = {}
    for member, claim in claims.items():
        # A member may list a partition twice; this is one claim.
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
    """Return the last owner of each partition before the newest generation, according to stale claims."""
    newest = max((claim.generation for claim in claims.values()), default=0)
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member, (partitions, generation) in claims.items():
        if generation == newest:
            continue
        for partition in partitions:
            if partition not in latest or generation > latest[partition][0]:
                latest[partition] = (generation, member)
    return {partition: member for partition, (_, member) in latest.items()}
