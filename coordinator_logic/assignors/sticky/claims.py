"""The partitions that members claim to own: how the claims are encoded, and who owns a partition.

The subscription had no field for owned partitions before KIP-429, so the ``sticky`` assignor puts them and their
generation into the user data. ``cooperative-sticky`` uses the field, and the user data only for the generation, which
has a field since KIP-792.

A member that missed a rebalance still claims partitions that other members have been assigned since. The claim with
the highest generation is valid. If several members claim a partition in the same generation, none of them owns it
(KIP-341).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator_logic.assignors.base import TopicMetadata
from coordinator_logic.embedded_protocols import primitives
from coordinator_logic.embedded_protocols.codec import NO_GENERATION
from coordinator_logic.embedded_protocols.primitives import ConsumerProtocolError, Reader, TopicPartition


class MemberData(NamedTuple):
    """A member's last assignment and its generation, -1 if it had none or does not report it."""

    partitions: list[TopicPartition]
    generation: int


def encode_owned_partitions(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Encode the user data of ``sticky`` in version 1: partitions by topic, then the generation."""
    by_topic = primitives.grouped_by_topic(sorted(partitions))
    return primitives.topic_partitions(by_topic) + primitives.int32(generation)


def decode_owned_partitions(user_data: bytes | None) -> MemberData:
    """Decode the user data of ``sticky``; version 0 has no generation. Unreadable data claims no partition."""
    if not user_data:
        return MemberData([], NO_GENERATION)
    reader = Reader(user_data)
    try:
        partitions = reader.topic_partitions()
    except ConsumerProtocolError:
        return MemberData([], NO_GENERATION)
    return MemberData(partitions, _generation(reader))


def encode_generation(generation: int) -> bytes:
    """Encode the user data of ``cooperative-sticky``."""
    return primitives.int32(generation)


def decode_generation(user_data: bytes | None) -> int:
    """Decode the user data of ``cooperative-sticky``; return -1 if it has no generation."""
    return _generation(Reader(user_data or b""))


def _generation(reader: Reader) -> int:
    try:
        return reader.int32()
    except ConsumerProtocolError:
        return NO_GENERATION


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
