"""The lag of a group over time and now, from its committed offsets and the logs of its partitions."""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.explain.lag.committed import Committed
from streaming.explain.offsets.plan import Log

__all__ = ["Lag", "LagSample", "PartitionLag", "lag_of"]

MAX_LOOKUPS = 4_000
"""For how many partitions, times the samples, the brokers look for a record."""

FEWEST_SAMPLES = 2

NO_OFFSETS = "the journal has no committed offsets of the group in this time"
NO_LOGS = "the brokers do not tell where its partitions end: none answers, or the topics do not exist or are hidden"

FirstRecords = Callable[[Collection[TopicPartition], int], Mapping[TopicPartition, int | None]]
"""The first offset of each partition whose record is not older than a time, None if all its records are older."""


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
