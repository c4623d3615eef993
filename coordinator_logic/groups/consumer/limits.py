"""The limits of what a consumer group stores for its members and their topics."""

from collections.abc import Collection, Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember, size_of_texts
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicDescription
from coordinator_logic.sizes import any_longer, utf8_length

MAX_PARTITIONS_OF_GROUP = 100_000
"""The most partitions of all topics of a consumer group together, so that an assignment fits into the journal."""

MAX_MATCHES_BYTES = 3 * 2**20
"""The most bytes of a group's patterns, and of what several of them match, so that a record of both fits into the
journal. A group is read and written with each batch of its requests."""
_LONGEST_ESCAPE = len(r"\u0000")
_BYTES_OF_ENTRY = 20
"""What a short name costs, too."""


def check_consumer_heartbeat(
    consumer: ConsumerGroup,
    member: ConsumerMember,
    updated: ConsumerMember,
    body: ConsumerGroupHeartbeatRequest,
    config: CoordinatorConfig,
) -> Refusal | None:
    """Check the sizes of what a heartbeat adds to its group; a member that needs no more room than before may stay."""
    if not topics_fit(consumer, body.topics):
        what = f"The group's topics have more than {MAX_PARTITIONS_OF_GROUP} partitions."
        return Refusal(Error.INVALID_REQUEST, what)
    if updated == member:
        return None
    texts = [updated.member_id, updated.client_id, updated.client_host, updated.subscribed_topic_regex]
    texts += [updated.group_instance_id or "", updated.rack_id or "", *updated.subscribed_topic_names]
    if any_longer(texts, config.group_max_identifier_bytes):
        what = f"An identifier, a topic or the pattern is longer than {config.group_max_identifier_bytes} bytes."
        return Refusal(Error.INVALID_REQUEST, what)
    more = size_of_texts(updated) - size_of_texts(member)
    if more <= 0 or consumer.size_of_members + more <= config.group_max_bytes:
        return None
    return Refusal(Error.GROUP_MAX_SIZE_REACHED, f"The group's members need more than {config.group_max_bytes} bytes.")


def check_patterns(consumer: ConsumerGroup, pattern: str) -> Refusal | None:
    """Check that a group has room for a new pattern."""
    patterns = _LONGEST_ESCAPE * sum(map(utf8_length, {*consumer.subscribed_patterns, pattern}))
    if patterns + sum(size_of_matches(each.topics) for each in consumer.patterns.values()) <= MAX_MATCHES_BYTES:
        return None
    what = f"The group's patterns and the topics that they match need more than {MAX_MATCHES_BYTES} bytes."
    return Refusal(Error.GROUP_MAX_SIZE_REACHED, what)


def size_of_matches(topics: Collection[str]) -> int:
    """The bytes that the topics take which a pattern matches."""
    return sum(map(len, topics)) + _BYTES_OF_ENTRY * len(topics)


def topics_fit(consumer: ConsumerGroup, described: Sequence[TopicDescription]) -> bool:
    """Whether a group has room for all these topics."""
    if not described:
        return True
    partitions = {name: topic.partitions for name, topic in consumer.topics.items()}
    partitions |= {topic.name: topic.partitions for topic in described}
    return sum(partitions.values()) <= MAX_PARTITIONS_OF_GROUP
