"""What one row of output adds to the metrics, as text that travels through Spark beside the row.

The job counts on the driver, per completed batch (see :mod:`streaming.metrics`), but only the operator, in a
worker, knows what a row means. So each row carries its measure in a column of its own, which Spark
aggregates and the sink never sees.
"""

from typing import NamedTuple

from coordinator_logic.records import (
    EXPIRED,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    StateChanged,
    TransactionalOffsetsCommitted,
)
from coordinator_logic.states import State

SEPARATOR = "|"
REBALANCE_COMPLETED = "rebalance"
OFFSETS = "offsets"


class AnsweredRequest(NamedTuple):
    """A response. ``waited_ms`` is the time from the request's append to the batch's time, rounded."""

    api: str
    error_code: int
    waited_ms: int


class RejectedRecord(NamedTuple):
    """A record of ``group-rejects``."""

    cause: str


class ChangedOffsets(NamedTuple):
    """A record of ``group-journal`` about offsets. ``change`` is ``committed``, ``deleted`` or ``expired``."""

    change: str
    partitions: int


Measure = AnsweredRequest | RejectedRecord | ChangedOffsets | None
"""None stands for a completed rebalance."""


def answered(api: str, error_code: int, waited_ms: int) -> str:
    """The measure of a response. Two significant digits keep the number of distinct measures small."""
    return SEPARATOR.join(("request", api, str(error_code), str(_two_digits(max(0, waited_ms)))))


def rejected(cause: str) -> str:
    """The measure of a reject."""
    return f"reject{SEPARATOR}{cause}"


def changed(record: Record) -> str | None:
    """The measure of a record of the journal, if it has one: what Kafka's own sensors of the same names count."""
    match record:
        case StateChanged(to_state=State.STABLE.value):
            return REBALANCE_COMPLETED
        case OffsetsCommitted() | TransactionalOffsetsCommitted():
            return SEPARATOR.join((OFFSETS, "committed", str(len(record.offsets))))
        case OffsetsDeleted():
            change = "expired" if record.reason == EXPIRED else "deleted"
            return SEPARATOR.join((OFFSETS, change, str(sum(len(topic.partitions) for topic in record.offsets))))
        case _:
            return None


def parse(measure: str) -> Measure:
    """What :func:`answered`, :func:`rejected` or :func:`changed` wrote.

    ``api`` is the only part that a client may have chosen, so it is cut out from between the others.
    """
    kind, _, rest = measure.partition(SEPARATOR)
    if kind == "request":
        api, error_code, waited_ms = rest.rsplit(SEPARATOR, 2)
        return AnsweredRequest(api, int(error_code), int(waited_ms))
    if kind == OFFSETS:
        change, partitions = rest.split(SEPARATOR)
        return ChangedOffsets(change, int(partitions))
    return RejectedRecord(rest) if kind == "reject" else None


def _two_digits(number: int) -> int:
    superfluous = max(0, len(str(number)) - 2)
    return int(round(number, -superfluous))
