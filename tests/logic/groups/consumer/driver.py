"""A consumer group that a test drives by hand, and consumers that behave as Kafka's do."""

from collections.abc import Mapping
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    TopicDescription,
    TopicIdPartitions,
    TopicsDescribedRequest,
    TopicsDescribedResponse,
)
from tests.logic.driver import Answer, Driven
from tests.support.parts import consumer_group

SESSION_MS = 45_000
REVOKE_MS = 10_000

Owned = Mapping[str, set[int]]


def topic_id(name: str) -> str:
    """The id of a topic in these tests."""
    return f"{name.replace(' ', '-'):_<22}"


def description(name: str, partitions: int, *, of_id: str | None = None) -> TopicDescription:
    """Describe a topic."""
    return TopicDescription(name, of_id or topic_id(name), partitions)


AS_A_BROKER = {
    "group_consumer_assignment_interval_ms": 0,
    "group_consumer_reconciling_heartbeat_interval_ms": 2**31 - 1,
}
"""A target with every new group epoch, as in Kafka's own tests, and the same heartbeat interval at all times."""


class DrivenConsumers(Driven):
    """A group with a method for each API of the consumer group protocol."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**{**AS_A_BROKER, **config})

    @property
    def consumer(self) -> ConsumerGroup:
        """What only a consumer group has."""
        return consumer_group(self.group)

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: Owned | None = None,
        topics: Mapping[str, int] | None = None,
        version: int = 1,
        host: str = "/127.0.0.1",
        **fields: Any,
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat; ``owned`` is by topic id, ``topics`` describes topics by name."""
        listed = None if owned is None else [TopicIdPartitions(each, sorted(owned[each])) for each in owned]
        described = [description(*topic) for topic in (topics or {}).items()]
        body = ConsumerGroupHeartbeatRequest(
            self.group_id, member_id, epoch, topic_partitions=listed, topics=described, **fields
        )
        return self.send("ConsumerGroupHeartbeat", body, version=version, host=host)

    def enter(
        self, member_id: str, *names: str, topics: Mapping[str, int] | None = None, **fields: Any
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Send the first heartbeat of a member that subscribes to these topics."""
        known = {"rebalance_timeout_ms": REVOKE_MS, "subscribed_topic_names": list(names), **fields}
        return self.beat(member_id, 0, owned={}, topics=topics, **known)

    def describe_consumers(self, version: int = 1) -> DescribedConsumerGroup:
        """Send ConsumerGroupDescribe."""
        answer: Answer[ConsumerGroupDescribeResponse]
        body = ConsumerGroupDescribeRequest([self.group_id])
        answer = self.send("ConsumerGroupDescribe", body, version=version)
        (described,) = answer.body.groups
        return described

    def topics_described(self, *described: TopicDescription) -> Answer[TopicsDescribedResponse]:
        """Send TopicsDescribed."""
        return self.send("TopicsDescribed", TopicsDescribedRequest(list(described)))

    def converge(self, *consumers: "Consumer", rounds: int = 8) -> None:
        """Let consumers send heartbeats in turn, and follow each answer."""
        for _ in range(rounds):
            for consumer in consumers:
                consumer.beat()


class Consumer:
    """A consumer that follows every answer at once, and says what it owns after it has changed."""

    def __init__(self, group: DrivenConsumers, member_id: str, instance: str | None = None) -> None:
        self.group, self.member_id, self.instance = group, member_id, instance
        self.epoch = 0
        self.owned: dict[str, set[int]] = {}

    def join(self, *names: str, topics: Mapping[str, int] | None = None, **fields: Any) -> "Consumer":
        """Join; the assignment of the answer is owned at once."""
        self.owned = {}
        self._follow(self.group.enter(self.member_id, *names, topics=topics, instance_id=self.instance, **fields))
        return self

    def beat(self, **fields: Any) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat with everything that it owns."""
        answer = self.group.beat(self.member_id, self.epoch, owned=self.owned, instance_id=self.instance, **fields)
        self._follow(answer)
        return answer

    def leave(self) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Leave; a static member for a while."""
        epoch = -1 if self.instance is None else -2
        return self.group.beat(self.member_id, epoch, instance_id=self.instance)

    def _follow(self, answer: Answer[ConsumerGroupHeartbeatResponse]) -> None:
        assert answer.error is Error.NONE, answer.body
        body = answer.body
        self.epoch = body.member_epoch
        if body.assignment is not None:
            listed = body.assignment.topic_partitions
            self.owned = {entry.topic_id: set(entry.partitions) for entry in listed}
