"""The function given to ``applyInPandasWithState``: rows -> requests -> step -> rows, for one group.

:func:`process` is all of it but Spark: bytes in, bytes out, so that the same input gives the same output, byte for
byte, however often a batch runs. Nothing that a request holds, and no defect of the logic, may raise out of it:
an exception would end the query, and with it every other group.
"""

import traceback
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.group import Group
from coordinator_logic.offsets import UnreadableOffsets
from coordinator_logic.records import GroupDirectoryEntry, directory_entry
from coordinator_logic.step import step
from streaming import wire
from streaming.topics import TopicNames
from streaming.wire import KafkaRecord, Rejected, Row

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

INPUT_COLUMNS = ("timestamp", "partition", "offset", "key", "value")
"""What the query hands over of each record, beside the group it belongs to; see :class:`KafkaRecord`."""

OUTPUT_SCHEMA = "topic string, partition int, key binary, value binary, measure string"
STATE_SCHEMA = "stored binary"
"""A :class:`StateRow`. Spark refuses a checkpoint whose schema was another one: this never changes, formats inside may.

One column, because Spark decodes the row of every group in every batch to look at its timeout, and makes the decoder
anew several times a batch: both cost by the column.
"""

MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""A group that would grow beyond it is refused the request: it has to fit into a worker, and into Arrow."""

TRACEBACK_FRAMES = 8

SLOW_BATCH_MS = 2_000
"""From which duration on a batch is slow: a third of the shortest session that Kafka's defaults allow.

A member cannot send heartbeats before it has the answer to its JoinGroup, which it gets at the end of the batch that
decided it, while its session counts from before. So a group whose joins were answered is called again in the very
next batch. If that one is late, it is as after a restart: sessions count from there.
"""

RETRY_AFTER_DEFECT_MS = 60_000
"""When to try a timer again that met a defect. Until then every request of the group tries it, too."""


class StateRow(NamedTuple):
    """A group in the state store: the snapshot, and what the operator itself has to remember."""

    snapshot: bytes

    join_answered_at: int = 0
    """The batch time of the last call, if a JoinGroup was answered in it; else 0."""

    sessions_from: int = 0
    """No session counts from before this time, because answers were late; see :data:`SLOW_BATCH_MS`."""

    def sessions_count_from(self, batch_time: int) -> int:
        """No session counts from before this time, as seen from the call after the one that stored this row."""
        is_late = self.join_answered_at and batch_time - self.join_answered_at > SLOW_BATCH_MS
        return batch_time if is_late else self.sessions_from

    @classmethod
    def unpacked(cls, stored: bytes) -> "StateRow":
        """From the state's column, as :meth:`packed` made it."""
        return cls(stored[_TIMES.size :], *_TIMES.unpack_from(stored))

    def packed(self) -> bytes:
        """For the state's column: the two times, big-endian int64, and the snapshot."""
        return _TIMES.pack(self.join_answered_at, self.sessions_from) + self.snapshot


_TIMES = Struct(">qq")


@dataclass(frozen=True)
class Settings:
    """What the operator needs to know. ``starts`` are the job's starts, ms since the epoch, ascending."""

    topics: TopicNames
    response_partitions: int
    config: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    starts: tuple[int, ...] = ()

    def started_at(self, batch_time: int) -> int:
        """The last start that is not later than the batch; 0 if there is none."""
        index = bisect_right(self.starts, batch_time)
        return self.starts[index - 1] if index else 0


class Outcome(NamedTuple):
    """What became of a group in a batch: ``state`` is None when nothing of it is to be kept."""

    rows: list[Row]
    state: StateRow | None
    wake_at: int | None


@dataclass(frozen=True)
class GroupOperator:
    """The function for ``applyInPandasWithState``, with ``ProcessingTimeTimeout``.

    pyspark's own worker calls it with frames; :mod:`streaming.arrow_worker` asks for the outcome itself.
    """

    settings: Settings

    def __call__(
        self, key: tuple[str], frames: "Iterator[pd.DataFrame]", state: "GroupState"
    ) -> "Iterator[pd.DataFrame]":
        stored = StateRow.unpacked(bytes(state.get[0])) if state.exists else None
        batch_time = state.getCurrentProcessingTimeMs()
        outcome = self.outcome(key[0], _records(frames), stored, batch_time)
        if outcome.state is not None:
            state.update((outcome.state.packed(),))
        elif stored is not None:
            state.remove()
        if outcome.wake_at is not None:
            state.setTimeoutDuration(max(1, outcome.wake_at - batch_time))
        # dtype object: a partition is null or an integer, and Spark concatenates the frames of many groups.
        yield pd.DataFrame(outcome.rows, columns=list(Row._fields), dtype=object)

    def outcome(self, group_id: str, records: list[KafkaRecord], stored: StateRow | None, batch_time: int) -> Outcome:
        """What becomes of a group in a batch; ``records`` as they come."""
        # Fields in this order are a record's place in the log, and no two records share one.
        records.sort(key=_place)
        return process(self.settings, group_id, records, stored, batch_time)


_place = itemgetter(0, 1, 2)


def _records(frames: Iterator[pd.DataFrame]) -> list[KafkaRecord]:
    records: list[KafkaRecord] = []
    for frame in frames:
        columns = (frame[name].tolist() for name in INPUT_COLUMNS)
        records.extend(map(KafkaRecord._make, zip(*columns, strict=True)))
    return records


def process(
    settings: Settings, group_id: str, records: Sequence[KafkaRecord], stored: StateRow | None, batch_time: int
) -> Outcome:
    """Take one group through a batch: ``records`` in order, then the time up to ``batch_time`` (ms)."""
    rows: list[Row] = []
    requests: list[tuple[Request, KafkaRecord]] = []
    for record in records:
        taken = wire.read(record, settings.response_partitions)
        if isinstance(taken, Rejected):
            rows += _refusal(settings.topics, group_id, taken, batch_time)
        else:
            requests.append((taken, record))
    if stored is None and not requests:
        return Outcome(rows, None, None)
    try:
        group = _loaded(stored)
    except snapshot.UnreadableSnapshot as error:
        rows += _quarantine(settings, group_id, requests, batch_time, str(error))
        return Outcome(rows, stored, None)
    before = None if group is None else directory_entry(group)
    sessions_from = 0 if stored is None else stored.sessions_count_from(batch_time)
    course = _Course(settings, group_id, batch_time, sessions_from)
    try:
        end = course.advance(group, [request for request, _ in requests], batch_time)
    except UnreadableOffsets as error:
        rows += _quarantine(settings, group_id, requests, batch_time, str(error))
        return Outcome(rows, stored, None)
    except Exception:  # a defect, or more than fits: whatever it is, it must stay within this group
        end = course.advance_one_by_one(_Stage([], stored, before, None), requests)
    rows += end.rows
    if end.line != before:
        rows.append(wire.directory_row(settings.topics, group_id, end.line))
    if end.state is None:
        return Outcome(rows, None, end.wake_at)
    join_answered_at = batch_time if course.has_answered_join else 0
    state = end.state._replace(sessions_from=sessions_from, join_answered_at=join_answered_at)
    return Outcome(rows, state, join_answered_at or end.wake_at)


def _refusal(topics: TopicNames, group_id: str, rejected: Rejected, batch_time: int) -> Iterator[Row]:
    if rejected.address is not None:
        yield wire.error_row(topics, rejected.address, group_id, rejected.error, rejected.reason, batch_time)
    yield wire.reject_row(topics, rejected)


def _quarantine(
    settings: Settings,
    group_id: str,
    requests: Sequence[tuple[Request, KafkaRecord]],
    batch_time: int,
    reason: str,
) -> Iterator[Row]:
    """Tell everybody to come back later, and report it: once a batch is enough to be seen."""
    dead = snapshot.quarantined(group_id)
    result = step(
        group_id,
        dead,
        [request for request, _ in requests],
        batch_time,
        started_at=settings.started_at(batch_time),
        config=settings.config,
    )
    for response in result.responses:
        yield wire.response_row(settings.topics, response, batch_time)
    if requests:
        why = f"group {group_id!r} is quarantined, its requests are answered COORDINATOR_NOT_AVAILABLE: {reason}"
        error = Error.COORDINATOR_NOT_AVAILABLE
        yield wire.reject_row(settings.topics, Rejected(requests[0][1], "quarantined", why, error, None))


class _Stage(NamedTuple):
    """Where a group stands after some of its requests, and what it has to say by then."""

    rows: list[Row]
    state: StateRow | None
    line: GroupDirectoryEntry | None
    wake_at: int | None


class _Course:
    """A group's way through one batch."""

    def __init__(self, settings: Settings, group_id: str, batch_time: int, sessions_from: int) -> None:
        self._settings = settings
        self._group_id = group_id
        self._batch_time = batch_time
        self._started_at = max(settings.started_at(batch_time), sessions_from)
        self.has_answered_join = False

    def advance(self, group: Group | None, requests: Sequence[Request], until: int) -> _Stage:
        """Step and write everything out. Raises what the logic raises, and where something does not fit."""
        result = step(
            self._group_id,
            group,
            requests,
            until,
            started_at=self._started_at,
            config=self._settings.config,
        )
        self.has_answered_join |= any(map(_lets_a_member_in, result.responses))
        rows = [row for response in result.responses for row in self._response(response)]
        rows += [wire.journal_row(self._settings.topics, entry) for entry in result.journal]
        line = None if result.group is None else directory_entry(result.group)
        return _Stage(rows, _stored(result.group), line, result.wake_at)

    def advance_one_by_one(self, stage: _Stage, requests: Sequence[tuple[Request, KafkaRecord]]) -> _Stage:
        """The same in the smallest steps, so that only what fails is refused and the group stays as it was."""
        rows: list[Row] = []
        for request, record in requests:
            try:
                stage = self.advance(_loaded(stage.state), [request], request.place.timestamp)
                rows += stage.rows
            except Exception as error:
                rows += self._failure(request, record, error)
        try:
            stage = self.advance(_loaded(stage.state), [], self._batch_time)
        except Exception as error:
            rows.append(self._reject(_no_record(self._group_id), error))
            return stage._replace(rows=rows, wake_at=self._batch_time + RETRY_AFTER_DEFECT_MS)
        return stage._replace(rows=rows + stage.rows)

    def _response(self, response: Response) -> Iterator[Row]:
        topics, address = self._settings.topics, response.address
        try:
            if address.reply_partition < self._settings.response_partitions:
                yield wire.response_row(topics, response, self._batch_time)
                return
            why, told = "its reply partition is gone", None
        except wire.RowTooLarge as error:
            why, told = str(error), address
        reason = f"the answer to {address.api} {address.correlation_id!r} cannot be sent: {why}"
        unsent = Rejected(_no_record(self._group_id), "unsendable", reason, Error.UNKNOWN_SERVER_ERROR, told)
        yield from _refusal(topics, self._group_id, unsent, self._batch_time)

    def _failure(self, request: Request, record: KafkaRecord, error: Exception) -> Iterator[Row]:
        reason = f"{request.address.api} could not be handled: {type(error).__name__}; see the rejects topic"
        yield wire.error_row(
            self._settings.topics,
            request.address,
            self._group_id,
            Error.UNKNOWN_SERVER_ERROR,
            reason,
            self._batch_time,
        )
        yield self._reject(record, error)

    def _reject(self, record: KafkaRecord, error: Exception) -> Row:
        cause = "too-large" if isinstance(error, wire.RowTooLarge) else "defect"
        reason = "".join(traceback.format_exception(error, limit=-TRACEBACK_FRAMES))
        rejected = Rejected(record, cause, reason, Error.UNKNOWN_SERVER_ERROR, None)
        return wire.reject_row(self._settings.topics, rejected)


def _lets_a_member_in(response: Response) -> bool:
    joins = response.address.api == "JoinGroup"
    return joins and response.error_code in (Error.NONE, Error.MEMBER_ID_REQUIRED)


def _loaded(stored: StateRow | None) -> Group | None:
    return None if stored is None else snapshot.decode(stored.snapshot)


def _stored(group: Group | None) -> StateRow | None:
    if group is None:
        return None
    encoded = snapshot.encode(group)
    if len(encoded) > MAX_SNAPSHOT_BYTES:
        raise wire.RowTooLarge(f"the group would have {len(encoded)} bytes, more than {MAX_SNAPSHOT_BYTES}")
    return StateRow(encoded)


def _no_record(group_id: str) -> KafkaRecord:
    """Stands in a reject for the record that is not to blame."""
    return KafkaRecord(-1, -1, -1, group_id.encode(), None)
