"""The messages of the newer consumer protocol (KIP-848): ConsumerGroupHeartbeat."""

from coordinator_logic.messages.base import Int16, Int32, Message

# ---- ConsumerGroupHeartbeat (API key 68) ---------------------------------------------------------------------------


class TopicPartitions(Message, frozen=True):
    """Partitions of a topic. ``topic_id`` is the id in Kafka's text form, which is URL-safe base64."""

    topic_id: str
    partitions: list[Int32]


class ConsumerGroupHeartbeatRequest(Message, frozen=True):
    """Join a group (``member_epoch`` 0), stay in it (above 0), leave it (-1), or leave it for a while (-2).

    None means that a field has not changed since the last heartbeat, and so does a ``rebalance_timeout_ms`` (ms) of -1.
    ``topic_partitions`` are the partitions that the member owns.
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
    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatAssignment(Message, frozen=True):
    """The partitions that a member may own now."""

    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message, frozen=True):
    """The member's epoch, and its assignment if that changed or the request had all fields."""

    error_code: Int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: ConsumerGroupHeartbeatAssignment | None = None
