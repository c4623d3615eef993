"""The fields of a member's heartbeats: all of them, or only what has changed since the last one. Plain data: no I/O.

Source: KIP-848, "ConsumerGroupHeartbeat API"; ConsumerHeartbeatRequestManager of Kafka's Java client.
"""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicIdPartitions
from streaming.client.membership.consumer_groups.types import TopicSubscription

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2


class TopicIdPartition(NamedTuple):
    """A partition of a topic id."""

    topic_id: str
    partition: int


class MemberIdentity(NamedTuple):
    """What a member's heartbeats say of it, beside its subscription. ``rebalance_timeout_ms`` is how long it may take
    to revoke partitions; ``server_assignor`` is the assignor that it asks for.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    server_assignor: str | None = None
    rebalance_timeout_ms: int = 300_000

    @property
    def leave_epoch(self) -> int:
        """The epoch with which it leaves: a static member leaves for a while, and keeps its partitions meanwhile."""
        return LEAVE_EPOCH if self.group_instance_id is None else STATIC_LEAVE_EPOCH


class HeartbeatFields:
    """Builds heartbeats, and remembers what of the subscription they have reported."""

    def __init__(self, identity: MemberIdentity) -> None:
        self._identity = identity
        self._reported = TopicSubscription()

    def full(
        self, epoch: int, subscription: TopicSubscription, owned: Iterable[TopicIdPartition]
    ) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat with all fields; its answer has the whole assignment."""
        self._reported = subscription
        identity = self._identity
        return ConsumerGroupHeartbeatRequest(
            identity.group_id,
            identity.member_id,
            epoch,
            identity.group_instance_id,
            identity.rack_id,
            identity.rebalance_timeout_ms,
            sorted(subscription.names),
            subscription.pattern,
            identity.server_assignor,
            [TopicIdPartitions(topic_id, numbers) for topic_id, numbers in grouped_by_topic(sorted(owned)).items()],
            sorted(subscription.topics.values(), key=lambda topic: topic.name),
        )

    def changes(self, epoch: int, subscription: TopicSubscription) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat with what has changed of the subscription since the last one; it confirms no revocation."""
        before, self._reported = self._reported, subscription
        identity = self._identity
        return ConsumerGroupHeartbeatRequest(
            identity.group_id,
            identity.member_id,
            epoch,
            identity.group_instance_id,
            subscribed_topic_names=None if before.names == subscription.names else sorted(subscription.names),
            subscribed_topic_regex=None if before.pattern == subscription.pattern else subscription.pattern,
            topics=[
                subscription.topics[name]
                for name in sorted(subscription.topics)
                if before.topics.get(name) != subscription.topics[name]
            ],
        )

    def leaving(self) -> ConsumerGroupHeartbeatRequest:
        """The last heartbeat of a member that leaves."""
        identity = self._identity
        return ConsumerGroupHeartbeatRequest(
            identity.group_id, identity.member_id, identity.leave_epoch, identity.group_instance_id
        )
