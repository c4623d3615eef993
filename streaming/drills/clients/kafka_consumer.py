"""Unmodified Kafka consumers that reach the coordinator through a gateway."""

import time
from typing import Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streaming.drills.clients.members import COMMIT_SECONDS, HEARTBEAT_INTERVAL_MS, POLL_SECONDS, LiveClient
from streaming.drills.clients.offsets import TOPIC, Ledger
from streaming.drills.clients.records import NOT_LOGGED
from streaming.drills.recording import Recording

PARTITIONS = 2
MOST_RECORDS = 500

Protocol = Literal["classic", "consumer"]
"""A value of ``group.protocol``."""

PROTOCOL_SETTINGS: dict[Protocol, dict[str, str | int]] = {
    "classic": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS},
    "consumer": {},
}
"""With the consumer group protocol (KIP-848), the coordinator decides about assignor and heartbeats."""


class KafkaConsumer(LiveClient):
    """A consumer that commits what it has consumed. bootstrap_servers: the gateway's address."""

    def __init__(
        self, bootstrap_servers: str, recording: Recording, ledger: Ledger, group: str, protocol: Protocol
    ) -> None:
        super().__init__(group, group, recording, ledger)
        self._next: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "group.protocol": protocol,
                "client.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": NOT_LOGGED,
                **PROTOCOL_SETTINGS[protocol],
            }
        )

    @property
    def is_settled(self) -> bool:
        """Whether it has consumed records of every partition."""
        return len(self._next) == PARTITIONS

    def run(self) -> None:
        self._consumer.subscribe(
            [TOPIC],
            on_assign=lambda *_: self._notice("rejoin", "it was assigned partitions again"),
            on_lost=lambda *_: self._notice("expelled", "its partitions were lost"),
        )
        due = time.monotonic() + COMMIT_SECONDS
        while not self._stopping.is_set():
            self._consume()
            if self._next and time.monotonic() >= due:
                self._commit()
                due = time.monotonic() + COMMIT_SECONDS
        self._is_watched = False
        self._consumer.close()

    def _consume(self) -> None:
        for message in self._consumer.consume(MOST_RECORDS, POLL_SECONDS):
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None:
                self._notice_error("consume", error)
            elif partition is not None and offset is not None:
                expected = self._next.get(partition, offset)
                if offset > expected:
                    self._notice("skipped", f"partition {partition} went on at {offset}, after {expected - 1}")
                elif offset == expected - 1:
                    self._notice("repeated", f"partition {partition} was delivered again up to offset {offset}")
                self._next[partition] = max(expected, offset + 1)

    def _commit(self) -> None:
        offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in self._next.items()]
        try:
            for committed in self._consumer.commit(offsets=offsets, asynchronous=False) or []:
                if committed.error is not None:
                    self._notice_error("commit", committed.error)
                else:
                    self._ledger.acknowledge((self.group, committed.partition), committed.offset)
        except KafkaException as failure:
            self._notice_error("commit", failure.args[0])

    def _notice_error(self, call: str, error: KafkaError) -> None:
        self._notice("error", f"{call}: {error.name()}")
