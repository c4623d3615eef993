"""Encode and decode subscriptions (the metadata in JoinGroup) and assignments (in SyncGroup).

Both begin with an int16 version. Each version only appends fields; a reader ignores fields that it does not know:

====== ========================================================= ==========================================
since  subscription                                              assignment
====== ========================================================= ==========================================
v0     topics, user data                                         partitions by topic, user data
v1     owned partitions by topic (KIP-429)
v2     generation id, -1 for none (KIP-792)
v3     rack id (KIP-881)
====== ========================================================= ==========================================

A higher version is read and written as v3. A negative version is an error.
"""

from dataclasses import dataclass, field

from coordinator_logic.embedded_protocols import primitives
from coordinator_logic.embedded_protocols.primitives import ConsumerProtocolError, Reader, TopicPartition, java_order

LOWEST_VERSION = 0
HIGHEST_VERSION = 3

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a member subscribes to, and the partitions that it owns.

    ``user_data`` is for the assignor. ``generation_id`` is the generation in which the member was assigned its
    ``owned_partitions``; any negative number means none.
    """

    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that the leader assigns to a member."""

    partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encode a subscription in ``version``, without the fields that the version does not have.

    Topics and owned partitions are sorted, so that equal subscriptions have equal bytes: the coordinator rebalances
    a group when a member's bytes change.

    Raises:
        ConsumerProtocolError: the version is negative, or a value does not fit its field.
    """
    version = _known_version(version)
    parts = [
        primitives.int16(version),
        primitives.array(map(primitives.string, sorted(subscription.topics, key=java_order))),
        primitives.nullable_bytes(subscription.user_data),
    ]
    if version >= 1:
        owned = sorted(subscription.owned_partitions, key=lambda tp: (java_order(tp.topic), tp.partition))
        parts.append(primitives.topic_partitions(primitives.grouped_by_topic(owned)))
    if version >= 2:
        parts.append(primitives.int32(max(NO_GENERATION, subscription.generation_id)))
    if version >= 3:
        parts.append(primitives.nullable_string(subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription, with defaults for the fields that its version does not have.

    Raises:
        ConsumerProtocolError: the version is negative, or the bytes are truncated or not a subscription.
    """
    reader = Reader(data)
    version = _known_version(reader.int16())
    return Subscription(
        topics=reader.strings(),
        user_data=reader.nullable_bytes(),
        owned_partitions=reader.topic_partitions() if version >= 1 else [],
        generation_id=max(NO_GENERATION, reader.int32()) if version >= 2 else NO_GENERATION,
        # Some clients send an empty rack id for none.
        rack_id=reader.nullable_string() or None if version >= 3 else None,
    )


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Decode only the topics of a subscription, of any version, in the layout of v0.

    The coordinator must accept subscriptions of newer clients. Like Kafka's, it ignores the version, even a
    negative one.

    Raises:
        ConsumerProtocolError: the bytes are truncated or not a subscription.
    """
    reader = Reader(metadata)
    reader.int16()
    topics = reader.strings()
    reader.nullable_bytes()
    return frozenset(topics)


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Encode an assignment. All versions have the same layout; partitions stay in the assignor's order.

    Raises:
        ConsumerProtocolError: the version is negative, or a value does not fit its field.
    """
    return (
        primitives.int16(_known_version(version))
        + primitives.topic_partitions(primitives.grouped_by_topic(assignment.partitions))
        + primitives.nullable_bytes(assignment.user_data)
    )


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment. Empty bytes are an empty assignment: the coordinator has none for the member.

    Raises:
        ConsumerProtocolError: the version is negative, or the bytes are truncated or not an assignment.
    """
    if not data:
        return Assignment()
    reader = Reader(data)
    _known_version(reader.int16())
    return Assignment(partitions=reader.topic_partitions(), user_data=reader.nullable_bytes())


def _known_version(version: int) -> int:
    if version < LOWEST_VERSION:
        raise ConsumerProtocolError(f"version {version} of the consumer protocol does not exist")
    return min(version, HIGHEST_VERSION)
