"""Measures: what an output row adds to the metrics.

Only the operator, in a Python worker, knows what a row means; the metrics are counted on the driver
(:mod:`streaming.job.monitoring.metrics`). So a row may carry a measure. A worker totals the measures of the rows that
it sends together, and the totals travel to Spark in a column of the first of these rows, which the Kafka sink ignores.
They travel as bytes: Spark takes longer to plan a batch and to report it with structs.

The totals also carry the due times of the groups that the worker has called (:mod:`streaming.job.due_times`).
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.group.record import Record
from coordinator_logic.records import (
    EXPIRED,
    JournalEntry,
    OffsetsCommitted,
    OffsetsDeleted,
    RequestCause,
    TransactionalOffsetsCommitted,
)
from streaming.job.group_types import GROUP_TYPES

EXACT_WAIT_MS = 1_000
"""Up to this wait the milliseconds are exact; beyond it a wait has three significant digits.

A backlog of an hour would otherwise give a total for each of its 3,600,000 milliseconds.
"""

CounterName = Literal["rebalances_completed", "offsets_committed", "offsets_deleted", "offsets_expired"]

MovedBy = Literal["commit", "reset"]
"""What made a committed offset lower: a client's commit, or an operator's ResetOffsets."""

COMMIT: MovedBy = "commit"
RESET: MovedBy = "reset"


class AnsweredRequest(NamedTuple):
    """The measure of a response. ``waited_ms`` is the time from the request's append to the batch's time."""

    api: str
    error_code: int
    waited_ms: int


class RejectedRecord(NamedTuple):
    """The measure of a record of ``group-rejects``."""

    cause: str


class Increment(NamedTuple):
    """The measure of a record of ``group-journal``: the counter grows by ``amount``."""

    counter: CounterName
    amount: int


class MovedBack(NamedTuple):
    """The measure of a record of ``group-journal`` that commits ``committed`` offsets and makes ``amount`` lower."""

    cause: MovedBy
    amount: int
    committed: int


Measure = AnsweredRequest | RejectedRecord | Increment | MovedBack


class RequestCount(msgspec.Struct, array_like=True):
    """How many requests had the same api, error and wait."""

    api: str
    error_code: int
    waited_ms: int
    count: int


class RejectCount(msgspec.Struct, array_like=True):
    """How many records were rejected for the same cause."""

    cause: str
    count: int


class Totals(msgspec.Struct, array_like=True):
    """The measures of some rows, and the due times of some groups (batch times, ms since the epoch, ascending)."""

    requests: list[RequestCount] = []
    rejects: list[RejectCount] = []
    rebalances_completed: int = 0
    offsets_committed: int = 0
    offsets_deleted: int = 0
    offsets_expired: int = 0
    offsets_moved_back: dict[MovedBy, int] = {}
    due_times: list[int] = []

    def encoded(self) -> bytes:
        """Encode the totals for their way through Spark."""
        return _encoder.encode(self)

    @staticmethod
    def decoded(encoded: bytes) -> "Totals":
        """Decode what :meth:`encoded` has returned."""
        return _decoder.decode(encoded)


_REBALANCE_ENDS = {record: ends for kind in GROUP_TYPES.values() for record, ends in kind.rebalance_ends.items()}

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Totals)


def of_response(api: str, error_code: int, waited_ms: int) -> AnsweredRequest:
    """Return the measure of a response; the wait is negative if the broker's clock is ahead of the driver's."""
    if not -EXACT_WAIT_MS <= waited_ms <= EXACT_WAIT_MS:
        waited_ms = int(round(waited_ms, 3 - len(str(abs(waited_ms)))))
    return AnsweredRequest(api, error_code, waited_ms)


def of_entry(entry: JournalEntry, moved_back: int = 0) -> Increment | MovedBack | None:
    """Return the measure of a journal entry that made so many committed offsets lower, if it has one."""
    if not moved_back:
        return _of_record(entry.record)
    is_reset = isinstance(entry.cause, RequestCause) and entry.cause.api == RESET_OFFSETS.name
    committed = len(entry.record.offsets) if isinstance(entry.record, OffsetsCommitted) else 0
    return MovedBack(RESET if is_reset else COMMIT, moved_back, committed)


def _of_record(record: Record) -> Increment | None:
    """The measure of a journal record: what Kafka's own sensors of the same names count."""
    completes_rebalance = _REBALANCE_ENDS.get(type(record))
    if completes_rebalance is not None and completes_rebalance(record):
        return Increment("rebalances_completed", 1)
    match record:
        case OffsetsCommitted() | TransactionalOffsetsCommitted():
            return Increment("offsets_committed", len(record.offsets))
        case OffsetsDeleted():
            partitions = sum(len(topic.partitions) for topic in record.offsets)
            return Increment("offsets_expired" if record.reason == EXPIRED else "offsets_deleted", partitions)
        case _:
            return None


def totals(measures: Iterable[Measure | None], due_times: Iterable[int] = ()) -> Totals | None:
    """Add the measures up, and the due times of groups without duplicates; None if there are neither."""
    counted = Counter(measures)
    counted.pop(None, None)
    added = Totals(due_times=sorted(set(due_times)))
    if not counted and not added.due_times:
        return None
    for measure, count in counted.items():
        match measure:
            case AnsweredRequest():
                added.requests.append(RequestCount(*measure, count))
            case RejectedRecord():
                added.rejects.append(RejectCount(measure.cause, count))
            case Increment():
                setattr(added, measure.counter, getattr(added, measure.counter) + count * measure.amount)
            case MovedBack(cause):
                moved = added.offsets_moved_back
                moved[cause] = moved.get(cause, 0) + count * measure.amount
                added.offsets_committed += count * measure.committed
    return added
