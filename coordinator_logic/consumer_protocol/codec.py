"""What a consumer writes into JoinGroup (its subscription) and gets out of SyncGroup (its assignment).

Both blobs begin with an int16 version. A version only ever appends fields, so a reader takes the ones it
knows and ignores the rest:

====== ========================================================= ==========================================
since  subscription                                              assignment
====== ========================================================= ==========================================
v0     topics, user data                                         partitions by topic, user data
v1     owned partitions by topic (KIP-429)
v2     generation id, -1 for none (KIP-792)
v3     rack id (KIP-881)
====== ========================================================= ==========================================

A version higher than any of these is read and written as the highest known; a negative one is an error.
"""

from dataclasses import dataclass, field

from coordinator_logic.consumer_protocol import primitives
from coordinator_logic.consumer_protocol.primitives import ConsumerProtocolError, Reader
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition, java_order

LOWEST_VERSION = 0
HIGHEST_VERSION = 3

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one member wants and has.

    ``user_data`` belongs to the assignor. ``generation_id`` is the generation of the assignment that
    ``owned_partitions`` comes from; any negative number means that there is none.
    """

    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader gives one member."""

    partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """The subscription's bytes in ``version``; fields that the version does not have are left out.

    Topics and owned partitions are sorted: the coordinator rebalances a group when a member's bytes
    change, so equal subscriptions have to look equal.

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
    """The subscription in ``data``, with defaults for what its version does not have.

    Raises:
        ConsumerProtocolError: the version is negative, or the bytes end early or are no subscription.
    """
    reader = Reader(data)
    version = _known_version(reader.int16())
    return Subscription(
        topics=reader.array(reader.string),
        user_data=reader.nullable_bytes(),
        owned_partitions=reader.topic_partitions() if version >= 1 else [],
        generation_id=max(NO_GENERATION, reader.int32()) if version >= 2 else NO_GENERATION,
        # An empty rack is how some clients say that they have none.
        rack_id=reader.nullable_string() or None if version >= 3 else None,
    )


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics in a subscription, as the coordinator reads them: any version, in the layout of v0.

    The coordinator does not take part in assigning and must not fail on what a newer client adds, so it
    does not look at the version, not even at its sign.

    Raises:
        ConsumerProtocolError: the bytes end early or are no subscription.
    """
    reader = Reader(metadata)
    reader.int16()
    topics = reader.array(reader.string)
    reader.nullable_bytes()
    return frozenset(topics)


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """The assignment's bytes. The layout is the same in every version; the order is the assignor's.

    Raises:
        ConsumerProtocolError: the version is negative, or a value does not fit its field.
    """
    return (
        primitives.int16(_known_version(version))
        + primitives.topic_partitions(primitives.grouped_by_topic(assignment.partitions))
        + primitives.nullable_bytes(assignment.user_data)
    )


def decode_assignment(data: bytes) -> Assignment:
    """The assignment in ``data``; no bytes at all is how the coordinator says "nothing for you".

    Raises:
        ConsumerProtocolError: the version is negative, or the bytes end early or are no assignment.
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
