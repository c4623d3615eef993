"""A member of a consumer group (KIP-848) that a test drives through a gateway's handlers."""

from typing import Any

from coordinator_logic.apis import CONSUMER_GROUP_HEARTBEAT
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicIdPartitions
from streaming.gateway.wire.values import text_of_topic_id
from tests.gateway.groups.driven.coordinator import Gateway

GROUP = "the-group"


class GatewayMember:
    """Sends heartbeats, follows each answer at once, and owns what it is assigned, by topic id."""

    def __init__(self, gateway: Gateway, member_id: str, group_id: str = GROUP) -> None:
        self.gateway, self.member_id, self.group_id = gateway, member_id, group_id
        self.epoch = 0
        self.owned: dict[str, set[int]] = {}

    async def join(self, *names: str, pattern: str | None = None, version: int = 1) -> Any:
        """Join, with topics or with a pattern."""
        self.epoch, self.owned = 0, {}
        listed = None if pattern is not None and not names else list(names)
        return await self.beat(
            is_full=True, subscribed_topic_names=listed, subscribed_topic_regex=pattern, version=version
        )

    async def beat(self, *, is_full: bool = False, version: int = 1, **fields: Any) -> Any:
        """Send a heartbeat, by default one that says what the member owns and nothing else."""
        owned = [TopicIdPartitions(each, sorted(self.owned[each])) for each in self.owned]
        if is_full:
            fields["rebalance_timeout_ms"] = 10_000
        body = ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, self.epoch, topic_partitions=owned, **fields
        )
        assert CONSUMER_GROUP_HEARTBEAT.key is not None
        answer = await self.gateway.ask(CONSUMER_GROUP_HEARTBEAT.key, version, body)
        if answer.error_code.name == "none":
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {
                    text_of_topic_id(topic.topic_id): set(topic.partitions)
                    for topic in answer.assignment.topic_partitions
                }
        return answer

    async def leave(self) -> Any:
        """Leave the group."""
        self.epoch = -1
        return await self.beat()
