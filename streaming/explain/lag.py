"""How far a group was behind: its committed offsets over time, and where the logs of its partitions ended then.

Nobody samples lag into the journal. So it follows from two sources: the commits in the journal, and the brokers' answer
to which record was the first one of a time. Needs no Spark.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.records import JournalEntry
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config
from streaming.explain.live.positions import Positions
from streaming.explain.offsets.log_positions import logs_of, offsets_at
from streaming.explain.offsets.plan import Log
from streaming.journal.fold import Observer

MAX_SAMPLES = 32

FIRST_WIDTH_MS = 1_000

MAX_LOOKUPS = 4_000
"""For how many partitions, times the samples, the brokers look for a record."""

FEWEST_SAMPLES = 2

NO_OFFSETS = "the journal has no committed offsets of the group in this time"
NO_LOGS = "the brokers do not tell where its partitions end: none answers, or the topics do not exist or are hidden"

FirstRecords = Callable[[Collection[TopicPartition], int], Mapping[TopicPartition, int | None]]
"""The first offset of each partition whose record is not older than a time, None if all its records are older."""


class Committed(NamedTuple):
    """The committed offsets at a time, ms since the epoch, by topic and partition."""

    time: int
    offsets: Mapping[tuple[str, int], int]


class CommittedOverTime(Observer):
    """Keeps the offsets of one group at regular times.

    How long the time is shows only at its end. So whenever there are too many samples, every other one is dropped, and
    the pause between them is doubled: there are always between half of :data:`MAX_SAMPLES` and all of them, unless the
    time is short.
    """

    def __init__(self) -> None:
        self._positions = Positions()
        self._samples: list[Committed] = []
        self._width = FIRST_WIDTH_MS
        self._next: int | None = None
        self._last = 0

    def note_before(self, entry: JournalEntry) -> None:
        """Note an entry of before the first sample: what it commits is the offset with which they begin."""
        self._positions.note(entry.record)

    def on_entry(self, entry: JournalEntry) -> None:
        if self._next is None:
            self._next = entry.timestamp + self._width
        while self._next < entry.timestamp:
            self._samples.append(Committed(self._next, self._positions.committed()))
            if len(self._samples) == MAX_SAMPLES:
                self._samples = self._samples[1::2]
                self._width *= 2
            self._next = self._samples[-1].time + self._width
        self._positions.note(entry.record)
        self._last = max(self._last, entry.timestamp)

    def samples(self) -> list[Committed]:
        """The samples, by time; the last one is that of the last entry. None before the first entry."""
        if self._next is None:
            return []
        return [*self._samples, Committed(self._last, self._positions.committed())]


class LagSample(msgspec.Struct, frozen=True, array_like=True):
    """The lag in records at a time, ms since the epoch; null if it is not known."""

    time: int
    records: int | None


class PartitionLag(msgspec.Struct, frozen=True, array_like=True):
    """The committed offset of a partition, and the end of its log now; null if the brokers do not tell it."""

    topic: str
    partition: int
    committed: int
    end: int | None

    @property
    def records(self) -> int | None:
        """How many records are after the committed offset."""
        return None if self.end is None else max(0, self.end - self.committed)


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """The lag of a group. ``absent`` says why there is none; it is empty if there is one.

    ``samples`` leave out the partitions whose end ``now`` does not have, and each partition before its first commit.
    """

    absent: str = ""
    samples: list[LagSample] = []
    now: list[PartitionLag] = []


def lag_of(committed: Sequence[Committed], logs: Mapping[TopicPartition, Log], first_records: FirstRecords) -> Lag:
    """The lag at the times of ``committed``, the last of which counts as now.

    ``logs`` are the logs now of those partitions whose leaders answer. Of many partitions, fewer samples are taken.
    """
    if not committed or not committed[-1].offsets:
        return Lag(absent=NO_OFFSETS)
    now = [
        PartitionLag(topic, number, offset, None if log is None else log.end)
        for (topic, number), offset in sorted(committed[-1].offsets.items())
        for log in [logs.get(TopicPartition(topic, number))]
    ]
    if not any(one.end is not None for one in now):
        return Lag(absent=NO_LOGS, now=now)
    chosen = _chosen(committed[:-1], max(FEWEST_SAMPLES, MAX_LOOKUPS // len(logs)))
    samples = [LagSample(one.time, _records_then(one, logs, first_records)) for one in chosen]
    records = sum(one.records or 0 for one in now)
    return Lag(samples=[*samples, LagSample(committed[-1].time, records)], now=now)


def _records_then(committed: Committed, logs: Mapping[TopicPartition, Log], first_records: FirstRecords) -> int | None:
    """The lag at an earlier time; None if no offset was committed then, or retention has deleted what would tell it."""
    offsets = {TopicPartition(*key): offset for key, offset in committed.offsets.items()}
    known = {partition: offset for partition, offset in offsets.items() if partition in logs}
    if not known:
        return None
    firsts = first_records(known.keys(), committed.time)
    total = 0
    for partition, offset in known.items():
        if partition not in firsts:
            return None
        first, log = firsts[partition], logs[partition]
        end = log.end if first is None else first
        # The log began later than the time: it ended then at some offset up to its beginning.
        if 0 < end <= log.start and offset < end:
            return None
        total += max(0, end - offset)
    return total


def _chosen(samples: Sequence[Committed], most: int) -> Sequence[Committed]:
    """At most so many samples, at regular places."""
    if len(samples) <= most:
        return samples
    return [samples[place * len(samples) // most] for place in range(most)]


def read_lag(
    config: LibrdkafkaConfig, client_id: str, committed: CommittedOverTime | None, timeout: float
) -> Lag | None:
    """The lag of a group whose entries were all added to ``committed``; without an answer, it says why it is absent.

    None, and no question, if ``committed`` is None.

    config: librdkafka's, with the brokers. timeout: how long to wait for each of some thirty answers, in seconds.
    """
    if committed is None:
        return None
    admin = AdminClient(admin_config(str(config["bootstrap.servers"]), client_id, config))
    samples = committed.samples()
    partitions = [TopicPartition(*key) for key in samples[-1].offsets] if samples else []

    def first_records(wanted: Collection[TopicPartition], time: int) -> Mapping[TopicPartition, int | None]:
        return offsets_at(admin, wanted, time, timeout)

    try:
        return lag_of(samples, logs_of(admin, partitions, timeout), first_records)
    except KafkaException as failure:
        return Lag(absent=f"the brokers do not answer: {failure.args[0].str()}")
