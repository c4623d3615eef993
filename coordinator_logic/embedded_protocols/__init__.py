"""Embedded protocols: the bytes that the members of a classic group exchange; here those of consumers.

A consumer sends its subscription in JoinGroup. The group's leader decodes all subscriptions, runs an assignor and sends
an assignment for each member in SyncGroup. The coordinator treats both as bytes, except that it reads the topics of
subscriptions (:func:`subscribed_topics`) to decide which offsets may expire. Imports nothing else of the project.
"""

from coordinator_logic.embedded_protocols.codec import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from coordinator_logic.embedded_protocols.primitives import ConsumerProtocolError, TopicPartition

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type whose metadata the coordinator can read; the metadata of all others is opaque bytes."""

__all__ = [
    "CONSUMER_PROTOCOL_TYPE",
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
