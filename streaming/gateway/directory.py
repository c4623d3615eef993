"""All groups, as the coordinator's directory topic has them: read once from its beginning, and then on and on."""

import logging
import threading

from confluent_kafka import Consumer, KafkaError, TopicPartition

from coordinator_logic.records import GroupDirectoryEntry
from streaming.client.directory import take_line
from streaming.client.librdkafka import LibrdkafkaConfig, required_partition_count
from streaming.gateway.reading import TopicReader

__all__ = ["GroupDirectory"]

log = logging.getLogger(__name__)

ASK_TIMEOUT_SECONDS = 10.0


class GroupDirectory:
    """Every group's last line, kept current on a thread between :meth:`start` and :meth:`close`."""

    def __init__(
        self, bootstrap_servers: str, topic: str, client_id: str, config: LibrdkafkaConfig | None = None
    ) -> None:
        self._topic = topic
        self._entries: dict[bytes | None, GroupDirectoryEntry] = {}
        self._lock = threading.Lock()
        self._complete = threading.Event()
        self._reader = TopicReader(bootstrap_servers, topic, client_id, dict(config or {}), self._read)

    def start(self) -> None:
        """Begin to read, as soon as the topic is there."""
        self._reader.start()

    def close(self) -> None:
        """End the thread."""
        self._reader.close()

    @property
    def is_complete(self) -> bool:
        """Whether the topic was read to what was its end."""
        return self._complete.is_set()

    def wait_complete(self, timeout: float) -> bool:
        """Wait until it is complete, at most that many seconds; whether it is."""
        return self._complete.wait(timeout)

    def entries(self) -> list[GroupDirectoryEntry]:
        """All groups as of now, in no order."""
        with self._lock:
            return list(self._entries.values())

    def _read(self, consumer: Consumer) -> None:
        count = required_partition_count(consumer, self._topic, ASK_TIMEOUT_SECONDS)
        consumer.assign([TopicPartition(self._topic, partition, 0) for partition in range(count)])
        unfinished = set(range(count))
        # Apart until it is complete: lines of groups that are gone may be missing from the log by now.
        entries: dict[bytes | None, GroupDirectoryEntry] = {}
        for record in self._reader.records(consumer):
            error = record.error()
            if error is None:
                with self._lock:
                    take_line(entries, record.key(), record.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(record.partition() or 0)
                if not unfinished:
                    self._entries = entries
                    self._complete.set()
            else:
                # librdkafka goes on trying by itself.
                log.warning("reading %s: %s", self._topic, error.str())
