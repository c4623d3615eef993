"""Reads the records of the coordinator's own topics: whoever may write to a topic can write one that cannot be read.

Every reader skips such a record, counts it, and says so in the log once for a topic and a kind of record, however many
there are and however often they are read.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

log = logging.getLogger(__name__)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises on the bytes of others; RecursionError for deeply nested JSON."""

ValueT = TypeVar("ValueT")


class KafkaRecord(Protocol):
    """What is used of a consumed record."""

    def key(self) -> bytes | None:
        """Its key."""

    def value(self) -> bytes | None:
        """Its value; None for a tombstone."""

    def partition(self) -> int | None:
        """Its partition."""

    def offset(self) -> int | None:
        """Its offset."""


class SkippedKind(NamedTuple):
    """A kind of record on a topic, of which some were skipped."""

    topic: str
    kind: str


class _Skipped:
    """The records that this process has skipped. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[SkippedKind] = Counter()

    def add(self, kind: SkippedKind) -> bool:
        """Count a record; returns whether it is the first of its kind."""
        with self._lock:
            self._counts[kind] += 1
            return self._counts[kind] == 1

    def counts(self) -> Mapping[SkippedKind, int]:
        with self._lock:
            return dict(self._counts)


_skipped = _Skipped()


def skipped_records() -> Mapping[SkippedKind, int]:
    """How many records this process has skipped because they cannot be read, by topic and kind."""
    return _skipped.counts()


class RecordDecoder(Generic[ValueT]):
    """Decodes the records of one kind on a topic, and skips those that cannot be read.

    Args:
        topic: The topic, for the log and the metric.
        kind: What a record should be, for the same: a few words.
        decode: Makes the value; it may raise one of :data:`UNREADABLE`.
        key_of: The key that a record with this value has. A value under another key is skipped: what is kept by key
            would be found by one name, and removed by another.
    """

    __slots__ = ("_decode", "_key_of", "_kind", "skipped")

    def __init__(
        self,
        topic: str,
        kind: str,
        decode: Callable[[bytes], ValueT],
        key_of: Callable[[ValueT], bytes] | None = None,
    ) -> None:
        self.skipped = 0
        """How many records this decoder has skipped."""
        self._kind = SkippedKind(topic, kind)
        self._decode = decode
        self._key_of = key_of

    def read(self, record: KafkaRecord) -> ValueT | None:
        """The value of a record; None for a tombstone, and for a record that was skipped."""
        value = record.value()
        if value is None:
            return None
        try:
            decoded = self._decode(value)
            if self._key_of is None or self._key_of(decoded) == record.key():
                return decoded
        except UNREADABLE as failure:
            self.skip(record, str(failure))
        else:
            self.skip(record, "its key is not that of its value")
        return None

    def skip(self, record: KafkaRecord, why: str) -> None:
        """Count a record that cannot be read."""
        self.skipped += 1
        if _skipped.add(self._kind):
            log.warning(
                "topic %s, partition %s, offset %s is not a valid %s and is skipped: %s. Further ones are only counted",
                self._kind.topic,
                record.partition(),
                record.offset(),
                self._kind.kind,
                why,
            )
