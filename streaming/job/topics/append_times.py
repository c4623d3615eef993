"""The difference between the brokers' clocks and the driver's, as far as the newest append times prove it.

It needs two small requests to the brokers, one of them for the partitions' ends, and reads no records, so every job
compares the clocks, with metrics or without.
"""

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.job.topics.partition_leaders import list_offsets


class NewestAppend(NamedTuple):
    """A partition's latest append time (ms since the epoch), and the offset behind its last record."""

    time_ms: int
    end: int


class _Poll(NamedTuple):
    found: NewestAppend
    begun_ms: int


class AppendTimeComparison:
    """Compares the newest append times of a topic's partitions with the driver's clock, poll by poll.

    A record that a poll finds and the one before it did not was appended between the two, if it took no longer to be
    replicated. So its append time is between them, by the driver's clock, unless the clocks differ. Without new
    records a partition proves nothing: what it proved last holds. Call :meth:`update` on one thread.
    """

    def __init__(self) -> None:
        self.skew_seconds = 0.0
        """By how much the clock of a broker is ahead of the driver's at least, negative if behind; of all partitions
        the largest difference. Any thread may read it."""
        self._polls: dict[int, _Poll] = {}
        self._skews_ms: dict[int, int] = {}

    def update(self, found: Mapping[int, NewestAppend], begun_ms: int, ended_ms: int) -> None:
        """Compare a poll, which began and ended at these times by the driver's clock, with the one before it."""
        for partition, newest in found.items():
            previous = self._polls.get(partition)
            if previous is not None and newest.end > previous.found.end:
                self._skews_ms[partition] = _skew_ms(previous, newest, ended_ms)
            self._polls[partition] = _Poll(newest, begun_ms)
        self.skew_seconds = max(self._skews_ms.values(), key=abs, default=0) / 1000


def _skew_ms(previous: _Poll, newest: NewestAppend, ended_ms: int) -> int:
    """The difference that new records prove. If the latest append time is not theirs, their own are before it."""
    if newest.time_ms > previous.found.time_ms and newest.time_ms > ended_ms:
        return newest.time_ms - ended_ms
    return min(0, newest.time_ms - previous.begun_ms)


def newest_appends(
    admin: AdminClient, topic: str, ends: Mapping[int, int], limit_seconds: float
) -> dict[int, NewestAppend]:
    """The newest append of each partition that has records. Raises KafkaException, as brokers before Kafka 3.0 do.

    ``ends`` are the offsets behind the last records, by partition. They have to be requested before: then the latest
    append times are not older than the records in front of the ends.
    """
    latest = list_offsets(admin, topic, ends, OffsetSpec.max_timestamp(), limit_seconds)  # type: ignore[no-untyped-call]
    return {
        partition: NewestAppend(found.timestamp, ends[partition])
        for partition, found in latest.items()
        if found.timestamp >= 0
    }
