"""The checks of a ConsumerGroupHeartbeat that need no group, in Kafka's order."""

from collections.abc import Collection

from coordinator_logic.apis import CONSUMER_GROUP_HEARTBEAT_FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT
from coordinator_logic.assignors.server import SERVER_ASSIGNORS
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_logic.messages.consumer_groups import ConsumerGroupHeartbeatRequest


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> Refusal | None:
    """Return why a heartbeat is refused, with Kafka's error messages; None if its fields are valid.

    Args:
        request: The heartbeat.
        version: The version of the API.
        assignors: The server-side assignors that are configured (``group.consumer.assignors``).
    """
    invalid = _invalid_identifier(request, version) or _invalid_for_epoch(request)
    if invalid is not None:
        return Refusal(Error.INVALID_REQUEST, invalid)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(name for name in SERVER_ASSIGNORS if name in assignors)}."
        )
        return Refusal(Error.UNSUPPORTED_ASSIGNOR, message)
    return None


def _invalid_identifier(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    needs_member_id = (
        version >= CONSUMER_GROUP_HEARTBEAT_FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT
        or request.member_epoch > JOIN_EPOCH
        or request.member_epoch == LEAVE_EPOCH
    )
    if needs_member_id and _is_blank(request.member_id):
        return "MemberId can't be empty."
    if _is_blank(request.group_id):
        return "GroupId can't be empty."
    if _is_blank(request.instance_id):
        return "InstanceId can't be empty."
    if _is_blank(request.rack_id):
        return "RackId can't be empty."
    return None


def _invalid_for_epoch(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.member_epoch < STATIC_LEAVE_EPOCH:
        return "MemberEpoch is invalid."
    if request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    if request.member_epoch != JOIN_EPOCH:
        return None
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    # An empty list is valid: such a member belongs to the group and subscribes to nothing.
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _is_blank(text: str | None) -> bool:
    """Whether an identifier is given and has only characters that Java's ``String.trim`` removes."""
    return text is not None and all(character <= " " for character in text)
