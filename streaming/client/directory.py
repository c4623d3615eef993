"""Reads the coordinator's directory: the compacted topic that has one record for every group."""

import logging
import threading
from collections.abc import Callable

import msgspec
from confluent_kafka import Consumer

from coordinator_logic.records import GroupDirectoryEntry
from streaming.client.compacted_topic import CompactedTopic, LatestValues
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import TO_END, TopicConsumer
from streaming.client.topic_reader import TopicReader
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES

log = logging.getLogger(__name__)

METADATA_TIMEOUT_SECONDS = 10.0

_decode = msgspec.json.Decoder(GroupDirectoryEntry).decode


def decode_entry(value: bytes) -> GroupDirectoryEntry:
    """An entry of the directory. Whoever may write to the topic can write one that no group has.

    Raises:
        msgspec.DecodeError: the value is no entry, or has a name that does not fit into an answer to ListGroups.
        UnicodeDecodeError, RecursionError: the value is no JSON, or nested too deeply.
    """
    entry = _decode(value)
    for name in (entry.group_id, entry.group_state, entry.group_type, entry.protocol_type):
        if len(name.encode()) > LONGEST_GROUP_ID_BYTES:
            raise msgspec.ValidationError(f"a name is longer than {LONGEST_GROUP_ID_BYTES} bytes")
    return entry


class GroupDirectory:
    """Every group's latest directory entry, kept current on a thread between :meth:`start` and :meth:`close`.

    The topic need not exist yet. A record that cannot be read is logged, counted and left out. :meth:`entries`,
    :meth:`entry` and :meth:`unreadable` may be called on any thread. ``on_failure`` is that of :class:`TopicReader`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        client_id: str,
        config: LibrdkafkaConfig,
        on_failure: Callable[[], object] = lambda: None,
    ) -> None:
        self._topic = topic
        self._read_so_far: CompactedTopic[GroupDirectoryEntry] | None = None
        self._lock = threading.Lock()
        self._complete = threading.Event()
        self._reader = TopicReader(bootstrap_servers, topic, client_id, config, self._read, on_failure)

    def start(self) -> None:
        """Start the thread; it reads the topic as soon as it exists."""
        self._reader.start()

    def close(self) -> None:
        """End the thread and wait for its end."""
        self._reader.close()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._reader.is_alive()

    @property
    def is_complete(self) -> bool:
        """Whether the topic was read to the end that it had when reading started."""
        return self._complete.is_set()

    def wait_complete(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until the directory is complete; return whether it is."""
        return self._complete.wait(timeout)

    def entries(self) -> list[GroupDirectoryEntry]:
        """The current entries, in no particular order; none before the directory is complete."""
        with self._lock:
            return [] if self._read_so_far is None else self._read_so_far.values

    def entry(self, group_id: str) -> GroupDirectoryEntry | None:
        """The current entry of a group; None if it has none, and before the directory is complete."""
        with self._lock:
            return None if self._read_so_far is None else self._read_so_far.value(group_id.encode())

    def unreadable(self) -> int:
        """How many records the entries leave out because they cannot be read."""
        with self._lock:
            return 0 if self._read_so_far is None else self._read_so_far.unreadable

    def _read(self, consumer: Consumer) -> None:
        # A new table on every start: compaction may have removed the tombstones of groups that were deleted since.
        directory = CompactedTopic(consumer, self._topic, decode_entry, METADATA_TIMEOUT_SECONDS)
        for record in self._reader.records(consumer):
            with self._lock:
                error = directory.apply(record)
                if directory.is_complete:
                    self._read_so_far = directory
                    self._complete.set()
            if error is not None:
                log.warning("topic %s cannot be read at the moment, librdkafka retries: %s", self._topic, error.str())


def read_directory(
    bootstrap_servers: str, topic: str, client_id: str, config: LibrdkafkaConfig, timeout: float
) -> list[GroupDirectoryEntry]:
    """The latest entry of every group, by group id; deleted groups have none. ``timeout`` in seconds.

    The coordinator updates a group's entry with the answers of the batch that changed the group.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or the topic could not be read to its end in time.
    """
    directory = LatestValues(topic, decode_entry)
    with TopicConsumer(bootstrap_servers, topic, client_id, config, timeout, TO_END) as consumer:
        consumer.assign(dict.fromkeys(consumer.partitions, 0))
        for record in consumer.read_to_end(within=timeout):
            directory.add(record)
    return sorted(directory.values, key=lambda entry: entry.group_id)
