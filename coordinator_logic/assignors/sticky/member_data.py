"""Encode and decode the partitions that a member claims to own, and the generation of its claim.

The subscription had no field for owned partitions before KIP-429, so the ``sticky`` assignor puts both into the user
data. ``cooperative-sticky`` uses the field, and the user data only for the generation, which has a field since KIP-792.
"""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_logic.embedded_protocols import primitives
from coordinator_logic.embedded_protocols.codec import NO_GENERATION
from coordinator_logic.embedded_protocols.primitives import ConsumerProtocolError, Reader
from coordinator_logic.embedded_protocols.topic_partition import TopicPartition


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
