"""Broker, coordinator and gateway, as users run them: processes that can be restarted and killed."""

import json
import socket
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.broker import EmbeddedBroker
from tests.clients.group import WatchedGroup
from tests.clients.process import Process
from tests.streaming.coordinator_process import CoordinatorProcess

LIMIT_SECONDS = 60.0


class GatewayProcess(Process):
    """``group-coordinator gateway`` on a port of its own, which stays the same through every start.

    brokers: where it finds them, if not where the coordinator does. settings: any of a gateway's options by their keys.
    """

    def __init__(
        self, coordinator: CoordinatorProcess, brokers: str | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.bootstrap_servers = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "streaming.cli", "gateway", "--json", "--listen", self.bootstrap_servers]
        command += ["--bootstrap-servers", brokers or coordinator.bootstrap_servers]
        command += ["--topic-prefix", coordinator.topics.prefix]
        for key, value in (settings or {}).items():
            command += ["--set", f"{key}={value}"]
        super().__init__("gateway", command)

    def start(self) -> None:
        """Start it and return when clients may connect."""
        super().start()
        self.await_line("that it is ready", lambda line: line.startswith("{") and json.loads(line)["ready"])


class System:
    """All of it. Clients connect to ``bootstrap_servers``, which is the gateway's address."""

    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.broker = broker
        self.coordinator = CoordinatorProcess(broker.bootstrap_servers, folder)
        self.gateway = GatewayProcess(self.coordinator)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return self.gateway.bootstrap_servers

    def start(self) -> None:
        """Start coordinator and gateway and return when both are ready."""
        self.coordinator.start()
        self.gateway.start()

    def kill(self) -> None:
        """End both."""
        self.gateway.kill()
        self.coordinator.kill()

    def new_topic(self, partitions: int) -> str:
        """A topic, made through the gateway."""
        name = f"topic-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(LIMIT_SECONDS)
        return name

    def new_group(
        self, folder: Path, partitions: int, *, bootstrap_servers: str | None = None, **settings: Any
    ) -> WatchedGroup:
        """A group on a topic of its own, with the settings of :class:`WatchedGroup`; its members are to be started."""
        address = bootstrap_servers or self.bootstrap_servers
        group_id = f"group-{uuid.uuid4().hex[:8]}"
        return WatchedGroup(address, group_id, self.new_topic(partitions), partitions, folder, **settings)

    def produce(self, topic: str, partitions: Sequence[int], count: int) -> None:
        """``count`` records to each of these partitions, through the gateway."""
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 1})
        for number in range(count):
            for partition in partitions:
                producer.produce(
                    topic,
                    f"record {number}",
                    partition=partition,
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
        assert producer.flush(LIMIT_SECONDS) == 0
        assert not failures

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        """The committed offset of each partition, asked through the gateway."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        asked = [ConsumerGroupTopicPartitions(group_id)]
        answer = admin.list_consumer_group_offsets(asked)[group_id].result(LIMIT_SECONDS)
        return {found.partition: found.offset for found in answer.topic_partitions if found.topic == topic}

    def records(self, topic: str) -> list[bytes]:
        """What partition 0 has that is committed, read through the gateway."""
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
            raise AssertionError(f"{topic} was not read to its end; {len(found)} records came")
        finally:
            consumer.close()

    def end_offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """The end of each partition, asked of the broker."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "unused"})
        try:
            return {
                index: consumer.get_watermark_offsets(TopicPartition(topic, index), LIMIT_SECONDS)[1]
                for index in range(partitions)
            }
        finally:
            consumer.close()
