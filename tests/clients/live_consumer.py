"""A consumer of librdkafka on a thread of the test, which can be made to do what no well-kept application does."""

import threading
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.waiting import LIMIT_SECONDS, wait_until

POLL_SECONDS = 0.1


class LiveConsumer:
    """Polls one topic within its ``with`` block. ``settings`` are librdkafka's, with ``bootstrap.servers``."""

    def __init__(self, topic: str, settings: dict[str, Any]) -> None:
        self.partitions: set[int] = set()
        self.assignments = 0
        """How often it was assigned partitions."""
        self.consumed: set[tuple[int, int]] = set()
        """The partitions and offsets of the records that it has consumed."""
        self._topic = topic
        self._consumer = Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **settings})
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=str(settings["client.id"]), daemon=True)

    def __enter__(self) -> Self:
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop_polling()
        self._consumer.close()

    def await_partitions(self, *partitions: int) -> None:
        """Wait until it owns these partitions."""
        wait_until(lambda: self.partitions == set(partitions), f"{partitions} assigned", describe=self._describe)

    def stop_polling(self) -> None:
        """Stop polling, as an application does that takes too long for a record; librdkafka's own threads go on."""
        self._is_stopped.set()
        self._thread.join()

    def commit(self, partition: int, offset: int) -> str | None:
        """Commit an offset; returns the name of the error, None without one."""
        try:
            self._consumer.commit(offsets=[TopicPartition(self._topic, partition, offset)], asynchronous=False)
        except KafkaException as failure:
            return str(failure.args[0].name())
        return None

    def committed(self, partition: int) -> int:
        """Fetch the committed offset of a partition; raises KafkaException."""
        (found,) = self._consumer.committed([TopicPartition(self._topic, partition)], timeout=LIMIT_SECONDS)
        return int(found.offset)

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            message = self._consumer.poll(POLL_SECONDS)
            if message is not None and message.error() is None:
                self.consumed.add((message.partition() or 0, message.offset() or 0))

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # All partitions, or those that are added, depending on the assignor and the protocol.
        self.partitions = self.partitions | {each.partition for each in partitions}
        self.assignments += 1

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.partitions = self.partitions - {each.partition for each in partitions}

    def _describe(self) -> str:
        return f"it owns {self.partitions}"
