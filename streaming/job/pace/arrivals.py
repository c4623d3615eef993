"""Sees requests arrive, by a consumer that waits at the brokers for the next one."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_END, Message, TopicPartition

from streaming.client.librdkafka import new_consumer

CLIENT_ID = "group-coordinator-pace"

SETTINGS: Mapping[str, Any] = {
    "auto.offset.reset": "latest",
    # A fetch waits at the broker for the first request.
    "fetch.min.bytes": 1,
    "fetch.wait.max.ms": 10_000,
    "socket.timeout.ms": 60_000,
    # One request is enough to know that there are some: no others are fetched until it has been looked at.
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 1,
    "fetch.queue.backoff.ms": 2,
    # An outage is reported by the job itself.
    "log_level": 0,
}


class Arrivals:
    """The requests of a topic with so many partitions that are appended from now on."""

    def __init__(self, config: Mapping[str, Any], topic: str, partitions: int) -> None:
        self._topic = topic
        self._consumer = new_consumer(config["bootstrap.servers"], CLIENT_ID, config, SETTINGS)
        self._consumer.assign([TopicPartition(topic, number, OFFSET_END) for number in range(partitions)])
        self._touched: set[int] = set()

    def next(self, seconds: float) -> Message | None:
        """The next request, or an error; waits so long for it."""
        record = self._consumer.poll(seconds)
        if record is not None and record.error() is None:
            self._touched.add(record.partition() or 0)
        return record

    def skip(self) -> None:
        """Pass over the requests that are known to be in the log."""
        for partition in self._touched:
            end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)[1]
            at = self._consumer.position([TopicPartition(self._topic, partition)])[0].offset
            if end > at >= 0:
                self._consumer.seek(TopicPartition(self._topic, partition, end))
        self._touched.clear()

    def close(self) -> None:
        self._consumer.close()
