"""The job's operator as a ``StatefulProcessor``, for ``transformWithState``: of pandas frames, or of rows.

A group has one value state, its :class:`StateRow` and the time of its timer, and one timer: its next deadline.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from streaming.job.due_times import due_time
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.operator import (
    INPUT_COLUMNS,
    OUTPUT_SCHEMA,
    GroupOperator,
    output_columns,
    output_frame,
    records_in,
    timeout_of,
)
from streaming.job.rows.records import KafkaRecord, Row

STATE = "group"
STATE_SCHEMA = "stored binary, timer long"
OUTPUT_ROW = SparkRow(*OUTPUT_SCHEMA.names)


class GroupProcessor(StatefulProcessor):
    """What both forms share: the state and the timer of a group around a call of the operator."""

    def __init__(self, settings: Settings) -> None:
        self._operator = GroupOperator(settings)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._handle = handle
        self._group = handle.getValueState(STATE, STATE_SCHEMA)

    def close(self) -> None:
        """Nothing is open."""

    def _process(
        self, key: Any, records: list[KafkaRecord], times: TimerValues, *, has_fired: bool = False
    ) -> tuple[list[Row], list[int]]:
        """Take a group through the batch; returns its rows, and when it is due. ``has_fired``: its timer is gone."""
        batch_time = times.getCurrentProcessingTimeInMs()
        kept = self._group.get()
        stored, timer = (None, None) if kept is None else (StateRow.unpacked(bytes(kept[0])), kept[1])
        outcome = self._operator.outcome(key[0], records, stored, batch_time)
        wake_at = None if outcome.wake_at is None else timeout_of(outcome.wake_at, batch_time)
        if has_fired:
            timer = None
        if timer is not None and timer != wake_at:
            self._handle.deleteTimer(timer)
        if wake_at is not None and timer != wake_at:
            self._handle.registerTimer(wake_at)
        if outcome.state is not None:
            self._group.update((outcome.state.packed(), wake_at))
        elif kept is not None:
            self._group.clear()
        return outcome.rows, [] if wake_at is None else [due_time(wake_at, batch_time)]


class PandasGroupProcessor(GroupProcessor):
    """For ``transformWithStateInPandas``."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Process a group's records of the batch."""
        yield output_frame(*self._process(key, records_in(rows), timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Fire a group's deadlines."""
        yield output_frame(*self._process(key, [], timerValues, has_fired=True))


class RowGroupProcessor(GroupProcessor):
    """For ``transformWithState``."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[SparkRow]:
        """Process a group's records of the batch."""
        records = [KafkaRecord._make([row[name] for name in INPUT_COLUMNS]) for row in rows]
        return self._rows(key, records, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[SparkRow]:
        """Fire a group's deadlines."""
        return self._rows(key, [], timerValues, has_fired=True)

    def _rows(
        self, key: Any, records: list[KafkaRecord], times: TimerValues, *, has_fired: bool = False
    ) -> Iterator[SparkRow]:
        columns = output_columns(*self._process(key, records, times, has_fired=has_fired))
        for values in zip(*columns, strict=True):
            yield OUTPUT_ROW(*values)
