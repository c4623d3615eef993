"""Read the coordinator's journal from its first entry, or from a time, to its present end."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from confluent_kafka import Message

from coordinator_logic.records import JournalEntry
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import EAGER, TopicConsumer
from streaming.contract.records import RecordDecoder
from streaming.journal.entries import journal_entry, key_of

CLIENT_ID = "group-coordinator-verify"

KIND = "journal entry"

# A fetch has 1 MiB by default.
SETTINGS: LibrdkafkaConfig = {**EAGER, "fetch.message.max.bytes": 8 * 1024 * 1024}

REPORT_SECONDS = 0.5
"""How long a reading takes before it reports its progress, and how often it reports."""


class JournalPlace(NamedTuple):
    """The place of a record in the journal."""

    partition: int
    offset: int


def journal_entries(
    config: LibrdkafkaConfig,
    topic: str,
    timeout: float,
    since: int = 0,
    client_id: str = CLIENT_ID,
) -> Iterator[JournalEntry | None]:
    """The entries of the whole journal, read once; arguments and errors as of :class:`JournalReader`."""
    with JournalReader(config, topic, timeout, client_id) as reader:
        yield from reader.entries(since=since)


class JournalReader(TopicConsumer):
    """Reads the journal. The entries of a group come in order.

    ``config`` is librdkafka's, with the brokers; the other arguments and the errors are those of
    :class:`TopicConsumer`. ``decode`` makes an entry of a record's value, as in :mod:`streaming.journal.entries`.
    """

    def __init__(
        self,
        config: LibrdkafkaConfig,
        topic: str,
        timeout: float,
        client_id: str = CLIENT_ID,
        decode: Callable[[bytes], JournalEntry] = journal_entry,
    ) -> None:
        super().__init__(str(config["bootstrap.servers"]), topic, client_id, config, timeout, SETTINGS)
        self._decoder = RecordDecoder(topic, KIND, decode, key_of)
        self._decode = decode
        self.place = JournalPlace(0, -1)
        """That of the entry that was yielded last."""

    @property
    def decode(self) -> Callable[[bytes], JournalEntry]:
        """What makes an entry of a record's value; it may be replaced."""
        return self._decode

    @decode.setter
    def decode(self, decode: Callable[[bytes], JournalEntry]) -> None:
        self._decoder = RecordDecoder(self.topic, KIND, decode, key_of)
        self._decode = decode

    def count(self, partitions: Iterable[int]) -> int:
        """How many records these partitions hold now."""
        wanted = list(partitions)
        return sum(self.ends(wanted).values()) - sum(self.beginnings(wanted).values())

    def entries(
        self,
        partitions: Iterable[int] | None = None,
        since: int = 0,
        key: bytes | None = None,
        on_read: Callable[[int], object] = lambda _count: None,
    ) -> Iterator[JournalEntry | None]:
        """The entries of partitions, by default of all, up to their present end; None for each record that is none.

        Entries that were appended before ``since`` (ms since the epoch of Unix) are left out. ``key``, a group id,
        leaves out all other groups. ``on_read`` is called with the number of records that were read since it was called
        last. :meth:`further` goes on from there.
        """
        times = dict.fromkeys(self.partitions if partitions is None else partitions, since)
        self.assign(times if since <= 0 else self.offsets_at(times))
        for record in self.read_to_end(on_read=on_read):
            if key is None or record.key() == key:
                yield self._entry(record)

    def further(self, key: bytes | None = None) -> Iterator[JournalEntry | None]:
        """Entries as they come, without an end; None whenever no record has come for 0.2 s."""
        for record in self.follow(0.2):
            if record is None:
                yield None
            elif (key is None or record.key() == key) and (entry := self._entry(record)) is not None:
                yield entry

    def _entry(self, record: Message) -> JournalEntry | None:
        self.place = JournalPlace(record.partition() or 0, record.offset() or 0)
        return self._decoder.read(record)


class ReadingProgress:
    """Counts the records that were read, of ``total`` at most: that includes those before the time it reads from."""

    def __init__(self, total: int, report: Callable[[str], object], what: str = "records of the journal") -> None:
        self._total = total
        self._what = what
        self._report = report
        self._read = 0
        self._next = time.monotonic() + REPORT_SECONDS

    def add(self, count: int) -> None:
        """Note that so many more records were read."""
        self._read += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_SECONDS
            self._report(f"read {self._read:,} of at most {self._total:,} {self._what}")
