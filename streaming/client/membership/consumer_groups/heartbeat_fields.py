"""The fields of a member's heartbeats: all of them, or only what has changed since the last one. Plain data: no I/O.

Source: KIP-848, "ConsumerGroupHeartbeat API"; ConsumerHeartbeatRequestManager of Kafka's Java client.
"""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicIdPartitions
from streaming.client.membership.consumer_groups.types import TopicSubscription
from streaming.client.membership.types import MemberConfig

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2


class TopicIdPartition(NamedTuple):
    """A partition of a topic id."""

    topic_id: str
    partition: int


class HeartbeatFields:
    """Builds heartbeats, and remembers what of the subscription they have reported."""

    def __init__(self, member_id: str, config: MemberConfig) -> None:
        self._member_id = member_id
        self._config = config
        self._reported = TopicSubscription()

    def full(
        self, epoch: int, subscription: TopicSubscription, owned: Iterable[TopicIdPartition]
    ) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat with all fields; its answer has the whole assignment."""
        self._reported = subscription
        return ConsumerGroupHeartbeatRequest(
            self._config.group_id,
            self._member_id,
            epoch,
            self._config.group_instance_id,
            self._config.rack_id,
            self._config.rebalance_timeout_ms,
            sorted(subscription.names),
            subscription.pattern,
            self._config.group_remote_assignor,
            [TopicIdPartitions(topic_id, numbers) for topic_id, numbers in grouped_by_topic(sorted(owned)).items()],
            sorted(subscription.topics.values(), key=lambda topic: topic.name),
        )

    def changes(self, epoch: int, subscription: TopicSubscription) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat with what has changed of the subscription since the last one; it confirms no revocation."""
        before, self._reported = self._reported, subscription
        return ConsumerGroupHeartbeatRequest(
            self._config.group_id,
            self._member_id,
            epoch,
            self._config.group_instance_id,
            subscribed_topic_names=None if before.names == subscription.names else sorted(subscription.names),
            subscribed_topic_regex=None if before.pattern == subscription.pattern else subscription.pattern,
            topics=[
                subscription.topics[name]
                for name in sorted(subscription.topics)
                if before.topics.get(name) != subscription.topics[name]
            ],
        )

    def leaving(self) -> ConsumerGroupHeartbeatRequest:
        """The last heartbeat of a member that leaves; a static one leaves for a while, and keeps its partitions."""
        epoch = STATIC_LEAVE_EPOCH if self._config.is_static else LEAVE_EPOCH
        return ConsumerGroupHeartbeatRequest(
            self._config.group_id, self._member_id, epoch, self._config.group_instance_id
        )
