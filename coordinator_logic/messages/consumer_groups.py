"""The messages of the consumer group protocol (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe.

The coordinator assigns partitions itself, but sees no cluster. So whoever sends a heartbeat describes the topics that
it is about, and TopicsDescribed reports what changes later. Kafka's messages have no such fields.
"""

from typing import Annotated

import msgspec

from coordinator_logic.messages.base import AUTHORIZED_OPERATIONS_NOT_ASKED, Int16, Int32, Message, TopicId

MAX_PARTITIONS = 1_000_000


class TopicDescription(Message, frozen=True):
    """An existing topic. ``topic_id`` is its id in Kafka's text form, ``partitions`` the number of its partitions."""

    name: str
    topic_id: TopicId
    partitions: Annotated[int, msgspec.Meta(ge=0, le=MAX_PARTITIONS)]


# ---- ConsumerGroupHeartbeat (API key 68) ---------------------------------------------------------------------------


class TopicIdPartitions(Message, frozen=True):
    """Partitions of a topic. ``topic_id`` is the id in Kafka's text form, which is URL-safe base64."""

    topic_id: str
    partitions: list[Int32]


class ConsumerGroupHeartbeatRequest(Message, frozen=True):
    """Join a group (``member_epoch`` 0), stay in it (above 0), leave it (-1), or leave it for a while (-2).

    None means that a field has not changed since the last heartbeat, and so does a ``rebalance_timeout_ms`` (ms) of -1.
    ``topic_partitions`` are the partitions that the member owns. ``topics``, which is not a field of Kafka's, describes
    topics to which the member subscribes by name, and those that it may see and that could match its pattern. A group
    remembers what it is told: a sender repeats only what the group does not know yet.
    """

    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicIdPartitions] | None = None
    topics: list[TopicDescription] = []

    @property
    def can_wait(self) -> bool:
        changed = (
            self.subscribed_topic_names,
            self.subscribed_topic_regex,
            self.server_assignor,
            self.topic_partitions,
        )
        return self.member_epoch > 0 and not self.topics and all(field is None for field in changed)


class ConsumerGroupHeartbeatAssignment(Message, frozen=True):
    """The partitions that a member may own now."""

    topic_partitions: list[TopicIdPartitions] = []


class ConsumerGroupHeartbeatResponse(Message, frozen=True):
    """The member's epoch, and its assignment if that changed or the request had all fields."""

    error_code: Int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: ConsumerGroupHeartbeatAssignment | None = None


# ---- ConsumerGroupDescribe (API key 69) ----------------------------------------------------------------------------


class ConsumerGroupDescribeRequest(Message, frozen=True):
    """Describe consumer groups."""

    group_ids: list[str]
    include_authorized_operations: bool = False


class DescribedTopicPartitions(Message, frozen=True):
    """Partitions of a topic that exists."""

    topic_id: str
    topic_name: str
    partitions: list[Int32]


class DescribedAssignment(Message, frozen=True):
    """Partitions of a member."""

    topic_partitions: list[DescribedTopicPartitions] = []


CLASSIC_MEMBER, CONSUMER_MEMBER, UNKNOWN_MEMBER_TYPE = 0, 1, -1


class DescribedConsumer(Message, frozen=True):
    """A member of a consumer group. ``assignment`` includes what the member has yet to revoke.

    ``member_type`` (v1) is 0 for a member that speaks the classic protocol, 1 for one that speaks the consumer group
    protocol.
    """

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: Annotated[int, msgspec.Meta(ge=-128, le=127)] = UNKNOWN_MEMBER_TYPE


class DescribedConsumerGroup(Message, frozen=True):
    """The current state of a consumer group; GROUP_ID_NOT_FOUND (69) for any other."""

    group_id: str
    error_code: Int16 = 0
    error_message: str | None = None
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: list[DescribedConsumer] = []
    authorized_operations: Int32 = AUTHORIZED_OPERATIONS_NOT_ASKED


class ConsumerGroupDescribeResponse(Message, frozen=True):
    """One entry for each group, in the order of the request."""

    groups: list[DescribedConsumerGroup] = []


# ---- SetGroupConfig (Kafka's is IncrementalAlterConfigs for a resource of type GROUP) ------------------------------


class SetGroupConfigRequest(Message, frozen=True):
    """Give a group values of its own for ``consumer.session.timeout.ms``, ``consumer.heartbeat.interval.ms`` or
    ``consumer.assignment.interval.ms``, by name; null removes one. Without any, the request only reads them.
    With ``validate_only``, nothing changes, and the response is that of the change.
    """

    group_id: str
    configs: dict[str, str | None] = {}
    validate_only: bool = False


class SetGroupConfigResponse(Message, frozen=True):
    """All values of the group's own; INVALID_CONFIG (40) if nothing was changed because of a wrong name or value.

    ``defaults`` are the coordinator's values, which hold where the group has none, for every name that a group can set.
    """

    error_code: Int16 = 0
    error_message: str | None = None
    configs: dict[str, str] = {}
    defaults: dict[str, str] = {}


# ---- TopicsDescribed (no API of Kafka: a broker's coordinator reads the cluster's metadata instead) ----------------


class TopicsDescribedRequest(Message, frozen=True):
    """Report topics that are new, have more partitions, or exist again under another id.

    A consumer group takes notice of those to which it subscribes. Its members' next heartbeats lead to a new target.
    """

    topics: list[TopicDescription]


class TopicsDescribedResponse(Message, frozen=True):
    """The result."""

    error_code: Int16 = 0
