"""Sees requests arrive, by a consumer that waits at the brokers for the next one."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Message, TopicPartition

from streaming.client.librdkafka import end_offset, new_consumer

CLIENT_ID = "group-coordinator-pace"

SETTINGS: Mapping[str, Any] = {
    "auto.offset.reset": "latest",
    # A fetch waits at the broker for the first request, in any of the partitions that it names. It does not name one
    # while so many requests are queued, and a broker gets one fetch at a time: that is how long a request of such a
    # partition may not be seen, if nothing arrives in the others.
    "fetch.min.bytes": 1,
    "fetch.wait.max.ms": 100,
    "queued.min.messages": 500,
    # One request is enough to know that there are some: a fetch brings one batch of each partition.
    "fetch.message.max.bytes": 1,
    "fetch.queue.backoff.ms": 2,
    # An outage is reported by the job itself.
    "log_level": 0,
}

ANSWER_LIMIT_SECONDS = 5.0


class Arrivals:
    """The requests of a topic with so many partitions that can be read from now on. Not thread-safe.

    Raises CoordinatorError, also from :meth:`confirm`, if a broker does not say where a partition ends.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, partitions: int) -> None:
        self._topic = topic
        self._consumer = new_consumer(config["bootstrap.servers"], CLIENT_ID, config, SETTINGS)
        try:
            self._consumer.assign([self._at(number, self._end(number)) for number in range(partitions)])
        except BaseException:
            self._consumer.close()
            raise
        self._touched: set[int] = set()
        self._skipped_to: dict[int, int] = {}

    def next(self, seconds: float) -> Message | None:
        """The next request, or an error; waits so long for it."""
        record = self._consumer.poll(seconds)
        if record is not None and record.error() is None:
            self._touched.add(record.partition() or 0)
        return record

    def skip(self) -> None:
        """Pass over the requests that are known to be in the log."""
        for number in self._touched:
            end = self._consumer.get_watermark_offsets(self._at(number), cached=True)[1]
            if end > self._consumer.position([self._at(number)])[0].offset >= 0:
                self._consumer.seek(self._at(number, end))
                self._skipped_to[number] = end
        self._touched.clear()

    def confirm(self) -> None:
        """Go back to what was passed over and cannot be read yet: from the first record of an open transaction on."""
        for number, end in self._skipped_to.items():
            if (readable := self._end(number)) < end:
                self._consumer.seek(self._at(number, readable))
        self._skipped_to.clear()

    def close(self) -> None:
        self._consumer.close()

    def _at(self, number: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self._topic, number, offset)

    def _end(self, number: int) -> int:
        """The end of what can be read of a partition."""
        return end_offset(self._consumer, self._topic, number, ANSWER_LIMIT_SECONDS)
