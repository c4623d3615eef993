"""Reads the coordinator's directory: the compacted topic that has one record for every group."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
from confluent_kafka import Consumer

from coordinator_logic.messages import GroupChange, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry, shows
from streaming.client.compacted_topic import CompactedTopic, LatestValues
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import TO_END, TopicConsumer
from streaming.client.topic_reader import TopicReader
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES

log = logging.getLogger(__name__)

METADATA_TIMEOUT_SECONDS = 10.0

ANSWERED_SECONDS = 1.0
"""How long a listing waits for the record of a change that an answer has named; usually it was there before."""

MAX_ANSWERED_CHANGES = 10_000

Callback = Callable[[], object]

KIND = "directory entry"

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


def _key_of(entry: GroupDirectoryEntry) -> bytes:
    return entry.group_id.encode()


class GroupDirectory:
    """Every group's latest directory entry, kept current on a thread between :meth:`start` and :meth:`close`.

    The topic need not exist yet. A record that cannot be read is counted and left out. The other methods may be called
    on any thread; a callback of theirs is called on the reader's, or at once. ``on_failure`` is that of
    :class:`TopicReader`.
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
        self._shown_waiters: dict[str, list[tuple[GroupChange, Callback]]] = {}
        self._end_waiters: list[tuple[Mapping[int, int], Callback]] = []
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

    @property
    def partitions(self) -> list[int]:
        """The partitions of the topic, as far as they are read; none before the directory is complete."""
        with self._lock:
            return [] if self._read_so_far is None else list(self._read_so_far.positions)

    def when_shown(self, group_id: str, change: GroupChange, callback: Callback) -> None:
        """Call back once the group's entry shows a change, or a later one."""
        with self._lock:
            is_shown = self._shows(group_id, change)
            if not is_shown:
                self._shown_waiters.setdefault(group_id, []).append((change, callback))
        if is_shown:
            callback()

    def when_read(self, ends: Mapping[int, int], callback: Callback) -> None:
        """Call back once the entries have all records before these offsets, by partition."""
        with self._lock:
            is_read = self._has_read(ends)
            if not is_read:
                self._end_waiters.append((ends, callback))
        if is_read:
            callback()

    def forget(self, callback: Callback, group_id: str | None = None) -> None:
        """Do not call back any more; ``group_id`` is that of :meth:`when_shown`."""
        with self._lock:
            if group_id is None:
                self._end_waiters = [waiter for waiter in self._end_waiters if waiter[1] is not callback]
            elif waiters := [waiter for waiter in self._shown_waiters.pop(group_id, ()) if waiter[1] is not callback]:
                self._shown_waiters[group_id] = waiters

    def unreadable(self) -> int:
        """How many records the entries leave out because they cannot be read."""
        with self._lock:
            return 0 if self._read_so_far is None else self._read_so_far.unreadable

    def _read(self, consumer: Consumer) -> None:
        # A new table on every start: compaction may have removed the tombstones of groups that were deleted since.
        directory = CompactedTopic(consumer, self._topic, KIND, decode_entry, _key_of, METADATA_TIMEOUT_SECONDS)
        for record in self._reader.records(consumer):
            with self._lock:
                error = directory.apply(record)
                if directory.is_complete:
                    first, self._read_so_far = self._read_so_far is not directory, directory
                    self._complete.set()
                    reached = self._pop_waiters(None if first else record.key())
                else:
                    reached = []
            for callback in reached:
                callback()
            if error is not None:
                log.warning("topic %s cannot be read at the moment, librdkafka retries: %s", self._topic, error.str())

    # ---- with the lock held -----------------------------------------------------------------------------------------

    def _shows(self, group_id: str, change: GroupChange) -> bool:
        read = self._read_so_far
        return read is not None and shows(read.value(group_id.encode()), change)

    def _has_read(self, ends: Mapping[int, int]) -> bool:
        read = self._read_so_far
        return read is not None and all(read.positions.get(each, 0) >= end for each, end in ends.items())

    def _pop_waiters(self, key: bytes | None) -> list[Callback]:
        """The callbacks to call after a record with this key, after the end of a partition, or after all records."""
        reached = [callback for ends, callback in self._end_waiters if self._has_read(ends)]
        if reached:
            self._end_waiters = [waiter for waiter in self._end_waiters if waiter[1] not in reached]
        group_ids = list(self._shown_waiters) if key is None else [key.decode(errors="replace")]
        for group_id in group_ids:
            waiters = self._shown_waiters.get(group_id, ())
            shown = [waiter for waiter in waiters if self._shows(group_id, waiter[0])]
            reached += [callback for _, callback in shown]
            left = [waiter for waiter in waiters if waiter not in shown]
            if left:
                self._shown_waiters[group_id] = left
            elif waiters:
                del self._shown_waiters[group_id]
        return reached


class AnsweredChanges:
    """The changes of groups that answers have named, and no listing has shown yet. Safe to share between threads."""

    def __init__(self) -> None:
        self._changes: OrderedDict[str, GroupChange] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, answer: ResponseEnvelope) -> None:
        """Note the change that an answer names, if it names one."""
        if answer.directory_change is not msgspec.UNSET:
            with self._lock:
                self._changes[answer.group_id] = answer.directory_change
                self._changes.move_to_end(answer.group_id)
                if len(self._changes) > MAX_ANSWERED_CHANGES:
                    self._changes.popitem(last=False)

    def missing(self) -> dict[str, GroupChange]:
        """The changes by group id."""
        with self._lock:
            return dict(self._changes)

    def listed(self, changes: Mapping[str, GroupChange]) -> None:
        """Forget these changes: a listing has waited for them."""
        with self._lock:
            for group_id, change in changes.items():
                if self._changes.get(group_id) == change:
                    del self._changes[group_id]


def read_directory(
    bootstrap_servers: str,
    topic: str,
    client_id: str,
    config: LibrdkafkaConfig,
    timeout: float,
    answered: Mapping[str, GroupChange] = MappingProxyType({}),
) -> list[GroupDirectoryEntry]:
    """The latest entry of every group, by group id; deleted groups have none. ``timeout`` in seconds.

    The coordinator writes a group's entry together with the answers of the batch that changed the group, in any order.
    ``answered`` are changes that answers have named, by group id: the reading waits for their records, at most
    :data:`ANSWERED_SECONDS`.

    Raises:
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers, or the topic could not be read to its end in time.
    """
    with TopicConsumer(bootstrap_servers, topic, client_id, config, timeout, TO_END) as consumer:
        directory = LatestValues(topic, KIND, decode_entry, _key_of, len(consumer.partitions))
        consumer.assign(dict.fromkeys(consumer.partitions, 0))
        for record in consumer.read_to_end(within=timeout):
            directory.add(record)
        deadline = time.monotonic() + min(timeout, ANSWERED_SECONDS)
        missing = dict(answered)
        while missing := {
            group_id: change
            for group_id, change in missing.items()
            if not shows(directory.value(group_id.encode()), change)
        }:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            for record in filter(consumer.note, consumer.next_records(remaining)):
                directory.add(record)
    return sorted(directory.values, key=lambda entry: entry.group_id)
