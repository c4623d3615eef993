"""Broker, coordinator and gateway: the processes that a user runs, which tests restart and kill."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.messages import PartitionToReset, ResetOffsetsRequest, TopicToReset
from streaming.client import CoordinatorClient, RebalanceInProgress
from streaming.embedded.broker import EmbeddedBroker
from tests.clients.group import WatchedGroup
from tests.clients.members.reporting import HEARTBEAT_INTERVAL_MS
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

CONSUMER_SESSION_MS = 15_000
CONSUMER_GROUPS = {
    "group.consumer.session.timeout.ms": CONSUMER_SESSION_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
}
"""In the consumer group protocol, the coordinator decides about sessions and heartbeats. A session is longer than a
gateway's restart, and no longer than that for the tests that wait for its end."""


class System:
    """A coordinator and a gateway at a broker. Clients connect to ``bootstrap_servers``, the gateway's address."""

    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.broker = broker
        self.coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, CONSUMER_GROUPS)
        self.gateway = GatewayProcess(broker.bootstrap_servers, self.coordinator.topics.prefix)

    @property
    def bootstrap_servers(self) -> str:
        """The gateway's address."""
        return self.gateway.bootstrap_servers

    def start(self) -> None:
        """Start coordinator and gateway, and wait until both are ready."""
        self.coordinator.start()
        self.gateway.start()

    @contextmanager
    def beside(self, settings: Mapping[str, str]) -> "Iterator[System]":
        """The same broker and coordinator with another gateway, which runs as long as the block."""
        other = copy(self)
        other.gateway = GatewayProcess(self.broker.bootstrap_servers, self.coordinator.topics.prefix, settings)
        with other.gateway:
            other.gateway.start()
            yield other

    def kill(self) -> None:
        """``kill -9`` both."""
        self.gateway.kill()
        self.coordinator.kill()

    def new_topic(self, partitions: int) -> str:
        """Create a topic through the gateway; returns its name."""
        name = unique("topic")
        create_topic(self.bootstrap_servers, name, partitions)
        return name

    def grow_topic(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic, through the gateway, until it has that many."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for grown in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            grown.result(LIMIT_SECONDS)

    def new_group(
        self, folder: Path, partitions: int, *, bootstrap_servers: str | None = None, **settings: Any
    ) -> WatchedGroup:
        """A group without members on a new topic, with the settings of :class:`WatchedGroup`."""
        address = bootstrap_servers or self.bootstrap_servers
        group_id = unique("group")
        return WatchedGroup(address, group_id, self.new_topic(partitions), partitions, folder, **settings)

    def produce(self, topic: str, partitions: Sequence[int], count: int) -> None:
        """Append ``count`` records to each of these partitions, through the gateway."""
        values = [b"record %d" % number for number in range(count)]
        produce(self.bootstrap_servers, topic, dict.fromkeys(partitions, values))

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        """Fetch the committed offset of each partition, through the gateway."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        requested = [ConsumerGroupTopicPartitions(group_id)]
        response = admin.list_consumer_group_offsets(requested)[group_id].result(LIMIT_SECONDS)
        return {found.partition: found.offset for found in response.topic_partitions if found.topic == topic}

    def reset_offsets(self, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Force the offsets of partitions, once the group is in no rebalance."""
        partitions = [PartitionToReset(partition, offset) for partition, offset in offsets.items()]
        request = ResetOffsetsRequest(group_id, [TopicToReset(topic, partitions)], force=True, reason="a test")
        with CoordinatorClient(
            self.broker.bootstrap_servers, topic_prefix=self.coordinator.topics.prefix, client_id="operator"
        ) as client:
            wait_until(
                lambda: client.ask(RESET_OFFSETS, group_id, request).result().unwrap(),
                f"{group_id} can be reset",
                ignore=(RebalanceInProgress,),
                pause=0.5,
            )

    def records(self, topic: str) -> list[bytes]:
        """Read all committed records of partition 0, through the gateway."""
        settings = {"group.id": "unused", "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, **settings})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            found: list[bytes] = []
            while message := consumer.poll(LIMIT_SECONDS):
                if error := message.error():
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return found
                found.append(message.value() or b"")
            raise AssertionError(f"{topic} was not read to its end; {len(found)} records arrived")
        finally:
            consumer.close()

    def end_offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """Fetch the end offset of each partition from the broker."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "unused"})
        try:
            return {
                index: consumer.get_watermark_offsets(TopicPartition(topic, index), LIMIT_SECONDS)[1]
                for index in range(partitions)
            }
        finally:
            consumer.close()
