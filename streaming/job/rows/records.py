"""The records that the job reads and the rows that it writes, with the limits of their sizes."""

from dataclasses import dataclass
from typing import NamedTuple

from streaming.contract.topics import MAX_REQUEST_JSON_BYTES, MAX_ROW_BYTES
from streaming.job import measures

MIN_ROW_BYTES = 256 * 1024
"""The lowest limit of a row: an error with the longest group id, reason and correlation id fits, however escaped."""


@dataclass(frozen=True)
class SizeLimits:
    """The sizes that the job enforces, in bytes.

    ``request`` is the limit of a request's value, and of its key: the query passes only as much on. ``row`` is the
    limit of key and value of a record that the job writes, at least :data:`MIN_ROW_BYTES`. ``snapshot`` is the limit of
    a stored group, which must fit into a worker and into Arrow. ``answers`` is the limit of a group's answers in a
    batch; Arrow's columns end at 2 GiB.
    """

    request: int = MAX_REQUEST_JSON_BYTES
    row: int = MAX_ROW_BYTES
    snapshot: int = 64 * 1024 * 1024
    answers: int = 64 * 1024 * 1024


DEFAULT_LIMITS = SizeLimits()


class KafkaRecord(NamedTuple):
    """A record of ``group-requests``; ``timestamp`` is its append time, ms since the epoch.

    The query cuts a key or a value at the limit of a request, and appends its original size in bytes, in decimal: so
    only what was cut is longer than the limit. Columns of their own would cost a tenth of a worker's time.
    """

    timestamp: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Row(NamedTuple):
    """A record for the Kafka sink, and its measure. Without a ``partition`` the producer chooses one by the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    measure: measures.Measure | None
