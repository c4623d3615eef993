"""The sizes of what a group stores for its members, and their limits.

Every batch with a request reads and writes the whole group, so its size is a cost for all other groups, too.
"""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group, Member
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.requests.heartbeat_checks import Refusal
from coordinator_logic.indexes.sizes import size_of_handed_out_ids, size_of_protocols, utf8_length
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, JoinGroupRequest, Protocol, TopicDescription

GENERATED_SUFFIX_LENGTH = 37
"""A generated member id is an identifier, a hyphen and a UUID."""

LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8 at most."""


def check_join(group: Group | None, request: Request, body: JoinGroupRequest, config: CoordinatorConfig) -> Error:
    """Check the sizes of a JoinGroup: INVALID_REQUEST, or GROUP_MAX_SIZE_REACHED if the whole group is too large.

    The identifiers of a member are checked only when it joins, since they do not change. A member that needs no more
    room than before may rejoin even if the group is over its limit.
    """
    member = None if group is None else _member(group, body)
    if member is None:
        identifiers = (request.client_id, request.client_host, body.group_instance_id or "", body.protocol_type)
        if _any_longer(identifiers, config.group_max_identifier_bytes):
            return Error.INVALID_REQUEST
    if not _protocols_fit(body.protocols, config):
        return Error.INVALID_REQUEST
    if group is None:
        return Error.NONE
    if member is None:
        more = utf8_length(request.client_id + request.client_host) + size_of_protocols(body.protocols)
        if body.member_id in group.pending_joins:
            more -= size_of_handed_out_ids([body.member_id])
    else:
        more = size_of_protocols(body.protocols) - size_of_protocols(member.protocols)
    fits = more <= 0 or group.member_index.size + more <= config.group_max_bytes
    return Error.NONE if fits else Error.GROUP_MAX_SIZE_REACHED


MAX_PARTITIONS_OF_GROUP = 100_000
"""The most partitions of all topics of a consumer group together, so that an assignment fits into the journal."""


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
    if _any_longer(texts, config.group_max_identifier_bytes):
        what = f"An identifier, a topic or the pattern is longer than {config.group_max_identifier_bytes} bytes."
        return Refusal(Error.INVALID_REQUEST, what)
    more = _size_of_consumer(updated) - _size_of_consumer(member)
    if more <= 0 or sum(map(_size_of_consumer, consumer.members.values())) + more <= config.group_max_bytes:
        return None
    return Refusal(Error.GROUP_MAX_SIZE_REACHED, f"The group's members need more than {config.group_max_bytes} bytes.")


def topics_fit(consumer: ConsumerGroup, described: Sequence[TopicDescription]) -> bool:
    """Whether a group has room for all these topics."""
    if not described:
        return True
    partitions = {name: topic.partitions for name, topic in consumer.topics.items()}
    partitions |= {topic.name: topic.partitions for topic in described}
    return sum(partitions.values()) <= MAX_PARTITIONS_OF_GROUP


def _size_of_consumer(member: ConsumerMember) -> int:
    texts = "".join(member.subscribed_topic_names) + member.subscribed_topic_regex
    classic = () if member.classic is None else member.classic.protocols
    texts += "".join(protocol.name for protocol in classic)
    texts += member.member_id + (member.group_instance_id or "") + member.client_id + member.client_host
    return utf8_length(texts) + sum(len(protocol.metadata) for protocol in classic)


def has_room_for_member_id(group: Group, member_id: str, config: CoordinatorConfig) -> bool:
    """Whether the group may hand out this member id beside those that are not used yet."""
    if len(group.pending_joins) >= config.group_max_pending_member_ids:
        return False
    return group.member_index.size + size_of_handed_out_ids([member_id]) <= config.group_max_bytes


def check_assignments(group: Group, assignments: Mapping[str, bytes], config: CoordinatorConfig) -> Error:
    """Check the sizes of the assignments that a leader brings: INVALID_REQUEST if they are too large."""
    assigned = [len(assignments.get(member_id, b"")) for member_id in group.members]
    replaced = sum(len(member.assignment) for member in group.members.values())
    if max(assigned) > config.group_max_assignment_bytes:
        return Error.INVALID_REQUEST
    too_large = group.member_index.size - replaced + sum(assigned) > config.group_max_bytes
    return Error.INVALID_REQUEST if too_large else Error.NONE


def shortened(identifier: str, config: CoordinatorConfig) -> str:
    """An identifier for the journal; one that is longer than a group stores is cut and ends in an ellipsis."""
    longest = config.group_max_identifier_bytes + GENERATED_SUFFIX_LENGTH
    return identifier if len(identifier) <= longest else f"{identifier[:longest]}…"


def _member(group: Group, body: JoinGroupRequest) -> Member | None:
    """The member that sends a JoinGroup, or whose place it takes as the same instance."""
    if body.group_instance_id is not None:
        return group.member_of_instance(body.group_instance_id)
    return group.members.get(body.member_id)


def _protocols_fit(protocols: Sequence[Protocol], config: CoordinatorConfig) -> bool:
    if len(protocols) > config.group_max_protocols:
        return False
    if _any_longer([protocol.name for protocol in protocols], config.group_max_identifier_bytes):
        return False
    return max([len(protocol.metadata) for protocol in protocols], default=0) <= config.group_max_metadata_bytes


def _any_longer(identifiers: Iterable[str], max_bytes: int) -> bool:
    for identifier in identifiers:
        if len(identifier) * LONGEST_CHARACTER > max_bytes and utf8_length(identifier) > max_bytes:
            return True
    return False
