"""What a member says it owns, and since when, in the two ways in which it can say so.

Consumers of before KIP-429 have no field for it in their subscription and put it into the user data, which
the ``sticky`` assignor still does; ``cooperative-sticky`` uses the fields, and the user data only for the
generation, which the fields lacked until KIP-792.
"""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_logic.consumer_protocol import primitives
from coordinator_logic.consumer_protocol.codec import NO_GENERATION
from coordinator_logic.consumer_protocol.primitives import ConsumerProtocolError, Reader
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition


class MemberData(NamedTuple):
    """A member's last assignment and its generation (-1: never had one, or did not say)."""

    partitions: list[TopicPartition]
    generation: int


def encode_owned_partitions(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """The user data of ``sticky``: partitions by topic, then the generation (version 1; 0 ends before it)."""
    by_topic = primitives.grouped_by_topic(sorted(partitions))
    return primitives.topic_partitions(by_topic) + primitives.int32(generation)


def decode_owned_partitions(user_data: bytes | None) -> MemberData:
    """The inverse, for version 0 too. Whoever sends what cannot be read counts as owning nothing."""
    if not user_data:
        return MemberData([], NO_GENERATION)
    reader = Reader(user_data)
    try:
        partitions = reader.topic_partitions()
    except ConsumerProtocolError:
        return MemberData([], NO_GENERATION)
    return MemberData(partitions, _generation(reader))


def encode_generation(generation: int) -> bytes:
    """The user data of ``cooperative-sticky``."""
    return primitives.int32(generation)


def decode_generation(user_data: bytes | None) -> int:
    """The inverse; -1 for anything that is no generation."""
    return _generation(Reader(user_data or b""))


def _generation(reader: Reader) -> int:
    try:
        return reader.int32()
    except ConsumerProtocolError:
        return NO_GENERATION
