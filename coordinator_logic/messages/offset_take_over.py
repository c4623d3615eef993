"""The messages with which a gateway creates a group that the brokers' coordinator had before: TakeOverOffsets.

Kafka's protocol has no such API.
"""

from coordinator_logic.messages.base import Int16, Message
from coordinator_logic.messages.offsets import TopicToCommit


class TakeOverOffsetsRequest(Message, frozen=True):
    """Create a group with the offsets that it has at the brokers' coordinator.

    A group that exists keeps its own, so the request may come twice, or from two gateways.
    """

    group_id: str
    topics: list[TopicToCommit]


class TakeOverOffsetsResponse(Message, frozen=True):
    """The result: ``taken_over`` is false if the group existed already."""

    error_code: Int16 = 0
    taken_over: bool = False
