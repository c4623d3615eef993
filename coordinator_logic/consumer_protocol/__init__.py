"""What the members of a consumer group say to each other through the coordinator.

A consumer puts a subscription into JoinGroup; the group's leader reads all of them, runs an assignor, and
puts an assignment for each member into SyncGroup. To the coordinator both are bytes: it peeks at the topics
of a subscription (:func:`subscribed_topics`), to know whose offsets may expire, and at nothing else.
"""

from coordinator_logic.consumer_protocol.codec import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from coordinator_logic.consumer_protocol.primitives import ConsumerProtocolError
from coordinator_logic.consumer_protocol.topic_partition import TopicPartition

__all__ = [
    "Assignment",
    "ConsumerProtocolError",
    "Subscription",
    "TopicPartition",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "subscribed_topics",
]
