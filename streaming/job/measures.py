"""Measures: what an output row adds to the metrics.

Only the operator, in a Python worker, knows what a row means; the metrics are counted on the driver
(:mod:`streaming.job.monitoring.metrics`). So a row may carry a measure. A worker totals the measures of the rows that
it sends together, and the totals travel to Spark in a column of the first of these rows, which the sink never sees.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pyspark.sql.types import ArrayType, LongType, ShortType, StringType, StructType

from coordinator_logic.records import (
    EXPIRED,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    StateChanged,
    TransactionalOffsetsCommitted,
)
from coordinator_logic.states import State

EXACT_WAIT_MS = 1_000
"""Up to this wait the milliseconds are exact; beyond it a wait has three significant digits.

A backlog of an hour would otherwise give a total for each of its 3,600,000 milliseconds.
"""

CounterName = Literal["rebalances_completed", "offsets_committed", "offsets_deleted", "offsets_expired"]


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


Measure = AnsweredRequest | RejectedRecord | Increment


class Totals(NamedTuple):
    """The measures of some rows. The first two list each distinct measure, followed by the number of its rows."""

    requests: list[tuple[str, int, int, int]]
    rejects: list[tuple[str, int]]
    rebalances_completed: int
    offsets_committed: int
    offsets_deleted: int
    offsets_expired: int


TOTALS_TYPE = (
    StructType()
    .add(
        "requests",
        ArrayType(
            StructType()
            .add("api", StringType())
            .add("error_code", ShortType())
            .add("waited_ms", LongType())
            .add("count", LongType())
        ),
    )
    .add("rejects", ArrayType(StructType().add("cause", StringType()).add("count", LongType())))
    .add("rebalances_completed", LongType())
    .add("offsets_committed", LongType())
    .add("offsets_deleted", LongType())
    .add("offsets_expired", LongType())
)
""":class:`Totals` as Spark's type."""


def of_response(api: str, error_code: int, waited_ms: int) -> AnsweredRequest:
    """Return the measure of a response; the wait is negative if the broker's clock is ahead of the driver's."""
    return AnsweredRequest(api, error_code, _rounded(waited_ms))


def of_record(record: Record) -> Increment | None:
    """Return the measure of a journal record, if it has one: what Kafka's own sensors of the same names count."""
    match record:
        case StateChanged(to_state=State.STABLE.value):
            return Increment("rebalances_completed", 1)
        case OffsetsCommitted() | TransactionalOffsetsCommitted():
            return Increment("offsets_committed", len(record.offsets))
        case OffsetsDeleted():
            partitions = sum(len(topic.partitions) for topic in record.offsets)
            return Increment("offsets_expired" if record.reason == EXPIRED else "offsets_deleted", partitions)
        case _:
            return None


def totals(measures: Iterable[Measure | None]) -> Totals | None:
    """Add the measures up; None if there are none."""
    counted = Counter(measures)
    counted.pop(None, None)
    if not counted:
        return None
    requests: list[tuple[str, int, int, int]] = []
    rejects: list[tuple[str, int]] = []
    sums: Counter[CounterName] = Counter()
    for measure, count in counted.items():
        match measure:
            case AnsweredRequest():
                requests.append((*measure, count))
            case RejectedRecord():
                rejects.append((measure.cause, count))
            case Increment():
                sums[measure.counter] += count * measure.amount
    return Totals(
        requests,
        rejects,
        rebalances_completed=sums["rebalances_completed"],
        offsets_committed=sums["offsets_committed"],
        offsets_deleted=sums["offsets_deleted"],
        offsets_expired=sums["offsets_expired"],
    )


def _rounded(waited_ms: int) -> int:
    if abs(waited_ms) <= EXACT_WAIT_MS:
        return waited_ms
    return int(round(waited_ms, 3 - len(str(abs(waited_ms)))))
