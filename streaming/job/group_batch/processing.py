"""Takes one group through a batch, from records to rows and state: bytes in, bytes out.

It is deterministic, so that a batch that runs again gives the same bytes. No content of a request and no defect of the
logic may raise out of it: an exception would end the query, and with it the service for every other group.
"""

import traceback
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from coordinator_logic import snapshot
from coordinator_logic.config import (
    FIRST_LOGIC_VERSION_NAMING_DIRECTORY_CHANGES,
    FIRST_LOGIC_VERSION_WITH_SIZES_IN_THE_DIRECTORY,
)
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.messages import GroupChange, small_substitute
from coordinator_logic.quarantine import step_quarantined
from coordinator_logic.records import GroupDirectoryEntry, directory_entry, quarantined_entry
from coordinator_logic.step import step
from coordinator_logic.stored_parts import UnreadablePart
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow, load, store
from streaming.job.group_batch.steps import DEADLINE_CHECK, LastSteps
from streaming.job.rows.reading import NOT_AUTHORIZED, Rejection, read_request
from streaming.job.rows.records import KafkaRecord, Row
from streaming.job.rows.writing import RowTooLarge, RowWriter

SMALL_ANSWER_BYTES = 4096
"""Answers up to this size do not count for the limit of a group's answers: an error in their place is as long."""

TRACEBACK_FRAMES = 8

RETRY_AFTER_DEFECT_MS = 60_000
"""The delay before a timer that raised is retried. Every request of the group retries it, too."""

MAX_WAIT_MS = 365 * 24 * 3_600_000
"""A group is called at least this often, so that no deadline that a request asked for overflows Spark's timeout."""

RequestInRecord = tuple[Request, KafkaRecord]


class Outcome(NamedTuple):
    """The result of a batch for a group; ``state`` is None if nothing is to be stored.

    ``wake_at`` is the batch time (ms since the epoch) from which the group must be called even without requests.
    """

    rows: list[Row]
    state: StateRow | None
    wake_at: int | None


def process(
    settings: Settings,
    group_id: str,
    records: Sequence[KafkaRecord],
    stored: StateRow | None,
    batch_time: int,
    *,
    more_follow: bool = False,
) -> Outcome:
    """Take a group through a batch: first the records, in order, then the time up to ``batch_time`` (ms).

    If more of its records follow in the same batch, no deadline fires after the last one.
    It raises nothing, and every row fits its topic, whatever bytes a record or the state holds.
    """
    rows: list[Row] = []
    requests: list[RequestInRecord] = []
    refused: set[tuple[int, int]] = set()
    batch = _GroupBatch(settings, group_id, batch_time, records, more_follow)
    for record in records:
        if record.value == DEADLINE_CHECK:
            batch.reads_checks = True
            continue
        request = read_request(
            record, settings.response_partitions, settings.limits, settings.identity_keys, settings.acls
        )
        if isinstance(request, Rejection):
            rows += batch.rejection_rows(request)
            if request.cause == NOT_AUTHORIZED:
                refused.add((record.partition, record.offset))
        else:
            requests.append((request, record))
    if stored is None and not requests:
        return Outcome(rows, None, None)
    if refused:
        batch.leave_out(refused)
    try:
        group = load(stored)
        size = len(stored.snapshot) if stored is not None and batch.tells_sizes else 0
        before = None if group is None else directory_entry(group, size)
        result = batch.step_all(group, stored, before, requests)
        if stored is not None and stored.is_quarantined:
            before = quarantined_entry(group_id)
    except (snapshot.UnreadableSnapshot, UnreadablePart) as error:
        assert stored is not None
        before = quarantined_entry(group_id) if stored.is_quarantined else None
        result = batch.step_quarantined(stored, requests, str(error))
    rows += result.rows
    if result.entry != before:
        rows += batch.directory_rows(result.entry, result.change)
    wake_at = result.wake_at
    if wake_at is not None and wake_at > batch_time + MAX_WAIT_MS:
        wake_at = batch_time + MAX_WAIT_MS
    return Outcome(rows, result.state, wake_at)


class _WrittenStep(NamedTuple):
    """The written result of a step: its rows, the state row, the group's directory entry, and the change of that."""

    rows: list[Row]
    state: StateRow | None
    entry: GroupDirectoryEntry | None
    wake_at: int | None
    change: GroupChange | None = None


class _GroupBatch:
    """One group in one batch: runs the logic and writes its results."""

    def __init__(
        self, settings: Settings, group_id: str, batch_time: int, records: Sequence[KafkaRecord], more_follow: bool
    ) -> None:
        self._settings = settings
        self._group_id = group_id
        self._batch_time = batch_time
        self._more_follow = more_follow
        self._started_at = settings.started_at(batch_time)
        self._records = records
        self._writer = RowWriter(
            settings.topics,
            group_id,
            batch_time,
            settings.limits,
            settings.config.job_epoch,
            keyed_partitions=(settings.journal_partitions, settings.directory_partitions),
        )
        self.reads_checks = False
        self.tells_sizes = settings.config.logic_version >= FIRST_LOGIC_VERSION_WITH_SIZES_IN_THE_DIRECTORY
        self._large_answers = 0

    def leave_out(self, places: Container[tuple[int, int]]) -> None:
        """Take the records at these partitions and offsets for not there: not even their times count."""
        self._records = [record for record in self._records if (record.partition, record.offset) not in places]

    def step_all(
        self,
        group: Group | None,
        stored: StateRow | None,
        entry: GroupDirectoryEntry | None,
        requests: Sequence[RequestInRecord],
    ) -> _WrittenStep:
        """Run a step for all requests, or for parts of them if that fails. Raises :class:`UnreadablePart`.

        ``stored`` is the group before the step, and ``entry`` its entry in the directory.
        """
        try:
            return self.step(group, entry, [request for request, _ in requests])
        except UnreadablePart:
            raise
        except Exception:  # A defect, or a row or snapshot that is too large: it must not affect other groups.
            return self.step_in_halves(_WrittenStep([], stored, entry, None), requests)

    def step(
        self,
        group: Group | None,
        entry: GroupDirectoryEntry | None,
        requests: Sequence[Request],
        deadlines_until: int | None = None,
    ) -> _WrittenStep:
        """Run a step and write its result. Raises what the logic raises, and :class:`RowTooLarge`.

        ``entry`` is the group's entry in the directory before the step.
        """
        settings, batch_time, records = self._settings, self._batch_time, self._records
        if self._more_follow and deadlines_until is None:
            deadlines_until = 0
        result = step(
            self._group_id,
            group,
            requests,
            batch_time,
            started_at=self._started_at,
            config=settings.config,
            # With checks, nothing fires after the last request before the end of the batch.
            read_until=0 if settings.has_deadline_checks else None,
            deadlines_until=deadlines_until,
            compares_clocks=not settings.is_replay,
        )
        wake_at, check = result.wake_at, None
        if settings.has_deadline_checks and deadlines_until is None and wake_at is not None:
            wake_at -= settings.config.expiry_allowance_ms
            if wake_at <= batch_time or self.reads_checks:
                last_steps = LastSteps(settings, self._group_id, batch_time, self._started_at, records)
                result, check = last_steps.fire(result)
                wake_at = result.wake_at
        state = store(result.group, settings.limits)
        change = None
        if result.journal:
            # Without a record of a change, what the entry says is unchanged, as for every heartbeat.
            size = len(state.snapshot) if state is not None and self.tells_sizes else 0
            before, entry = entry, None if result.group is None else directory_entry(result.group, size)
            if entry != before and settings.config.logic_version >= FIRST_LOGIC_VERSION_NAMING_DIRECTORY_CHANGES:
                last = result.journal[-1]
                change = GroupChange(last.incarnation, last.sequence, is_deletion=result.group is None)
        moved_back = result.moved_back
        journal = [self._writer.journal(entry, moved_back.get(place, 0)) for place, entry in enumerate(result.journal)]
        rows: list[Row] = []
        for response in result.responses:
            self._add_answer(rows, response, change)
        rows += journal
        if check is not None:
            rows.append(check)
        return _WrittenStep(rows, state, entry, wake_at, change)

    def step_in_halves(self, written: _WrittenStep, requests: Sequence[RequestInRecord]) -> _WrittenStep:
        """Run a step for all requests, and halve those whose step raises, until one is left: only that is refused.

        Every step reads and writes the whole group, so a step for each request would make the cost quadratic.
        """
        rows: list[Row] = []
        waiting = [requests] if requests else []
        while waiting:
            part = waiting.pop()
            last, record = part[-1]
            try:
                sent = [request for request, _ in part]
                written = self._step_after(written, sent, last.place.timestamp)
                rows += written.rows
            except UnreadablePart:
                raise
            except Exception as error:
                smaller = self._smaller(last, error)
                if len(part) == 1 and smaller is not None:
                    rows.append(self._failure_reject(record, error))
                    waiting.append([(smaller, record)])
                elif len(part) == 1:
                    rows += self._failure_rows(last, record, error)
                else:
                    middle = len(part) // 2
                    waiting += [part[middle:], part[:middle]]
        try:
            written = self._step_after(written, [])
        except UnreadablePart:
            raise
        except Exception as error:
            rows.append(self._failure_reject(_no_record(self._group_id), error))
            return written._replace(rows=rows, wake_at=self._batch_time + RETRY_AFTER_DEFECT_MS)
        return written._replace(rows=rows + written.rows)

    def _step_after(
        self, written: _WrittenStep, requests: Sequence[Request], deadlines_until: int | None = None
    ) -> _WrittenStep:
        after = self.step(load(written.state), written.entry, requests, deadlines_until)
        return after._replace(change=after.change or written.change)

    def _smaller(self, request: Request, error: Exception) -> Request | None:
        """The request to handle in place of one that is too large, for which other members wait; None without one."""
        # Earlier releases let the others wait.
        if not isinstance(error, RowTooLarge) or not self._settings.config.logic_version:
            return None
        body = small_substitute(request.body)
        return None if body is None else replace(request, body=body)

    def rejection_rows(self, rejection: Rejection) -> Iterator[Row]:
        """The answer to a rejected record, if it has an address, and its dead letter."""
        if rejection.address is not None:
            yield self._writer.error(rejection.address, rejection.error, rejection.reason)
        yield self._writer.reject(rejection)

    def step_quarantined(self, stored: StateRow, requests: Sequence[RequestInRecord], why: str) -> _WrittenStep:
        """Answer for a group whose stored state cannot be read, and report it once per batch that has requests.

        After a request that drops the state, the group is created again by the next one that can.
        """
        result = step_quarantined(
            self._group_id,
            stored.snapshot,
            why,
            [request for request, _ in requests],
            self._batch_time,
            self._settings.config,
        )
        rows: list[Row] = []
        try:
            journal = [self._writer.journal(entry) for entry in result.journal]
        except RowTooLarge as error:  # The entry repeats the sender of the request that drops the state.
            failed = [row for request, record in requests for row in self._failure_rows(request, record, error)]
            return _WrittenStep(failed, stored.quarantined(), quarantined_entry(self._group_id), None)
        for response in result.responses:
            self._add_answer(rows, response)
        rows += journal
        if result.refused:
            reason = f"the group is quarantined, its requests are answered COORDINATOR_NOT_AVAILABLE: {why}"
            code = Error.COORDINATOR_NOT_AVAILABLE
            rows += self.rejection_rows(Rejection(requests[0][1], "quarantined", reason, code, None))
        if not result.is_dropped:
            return _WrittenStep(rows, stored.quarantined(), quarantined_entry(self._group_id), None)
        created = self.step_all(None, None, None, requests[result.handled :])
        return created._replace(rows=rows + created.rows)

    def directory_rows(self, entry: GroupDirectoryEntry | None, change: GroupChange | None) -> Iterator[Row]:
        """The group's entry in the directory, None for its tombstone; a dead letter if it does not fit."""
        try:
            yield self._writer.directory(entry, change)
        except RowTooLarge as error:
            yield self._failure_reject(_no_record(self._group_id), error)

    def _add_answer(self, rows: list[Row], response: Response, change: GroupChange | None = None) -> None:
        settings, address = self._settings, response.address
        if address.reply_partition >= settings.response_partitions:
            rows += self._unsendable(address, "the responses topic no longer has its reply partition", None)
            return
        try:
            row = self._writer.response(response, change)
        except RowTooLarge as error:
            rows += self._unsendable(address, str(error), address)
            return
        size = len(row.value or b"")
        if size > SMALL_ANSWER_BYTES:
            self._large_answers += size
            if self._large_answers > settings.limits.answers:
                why = f"the group's answers in this batch exceed {settings.limits.answers} bytes"
                rows += self._unsendable(address, why, address)
                return
        rows.append(row)

    def _unsendable(self, address: ReplyAddress, why: str, error_address: ReplyAddress | None) -> Iterator[Row]:
        reason = f"the response to {address.api} {address.correlation_id!r} cannot be sent: {why}"
        record, error_code = _no_record(self._group_id), Error.UNKNOWN_SERVER_ERROR
        return self.rejection_rows(Rejection(record, "unsendable", reason, error_code, error_address))

    def _failure_rows(self, request: Request, record: KafkaRecord, error: Exception) -> Iterator[Row]:
        what = str(error) if isinstance(error, RowTooLarge) else f"{type(error).__name__}; see the rejects topic"
        reason = f"{request.address.api} could not be handled: {what}"
        yield self._writer.error(request.address, Error.UNKNOWN_SERVER_ERROR, reason)
        yield self._failure_reject(record, error)

    def _failure_reject(self, record: KafkaRecord, error: Exception) -> Row:
        cause = "too-large" if isinstance(error, RowTooLarge) else "defect"
        reason = "".join(traceback.format_exception(error, limit=-TRACEBACK_FRAMES))
        return self._writer.reject(Rejection(record, cause, reason, Error.UNKNOWN_SERVER_ERROR, None))


def _no_record(group_id: str) -> KafkaRecord:
    """The record of a reject that no record caused."""
    return KafkaRecord(-1, -1, -1, group_id.encode(), None)
