"""Requests that an earlier job has read are replayed as it has handled them.

A checkpoint can be older than what the last active job had read: it was restored from a copy, or the host has lost its
newest files. The requests since then are in the log, and they were answered. A group takes each of them with the
configuration of the start that read it first, and at the time when it was appended: sessions count from the starts
before that time, no answer counts as late, and a deadline fires before the request that was behind it, or with the last
batch of that job. So the group comes to the same generations, members and offsets, and its answers and records are the
same, byte for byte.

After these requests, the group waits for a deadline check of its own before it counts time up to the present: until it
has read that, earlier requests may follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from coordinator_logic.snapshot import UnreadableSnapshot
from coordinator_logic.stored_parts import UnreadablePart
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start, start_that_read
from streaming.job.group_batch.state_row import StateRow, load
from streaming.job.group_batch.steps import DEADLINE_CHECK, check_row
from streaming.job.rows.records import KafkaRecord, Row

CHECK_AFTER_MS = 1_000
"""How long a group waits for further requests to replay before it asks for a check."""

REPEAT_CHECK_MS = 60_000
"""How long a group waits for a check. Behind many requests it takes long, and another one does no harm."""


class _ReadByStart(NamedTuple):
    """Requests that the batches of one start have read first, up to a deadline check or the end."""

    start: Start
    records: list[KafkaRecord]


def process_batch(
    settings: Settings,
    group_id: str,
    records: Sequence[KafkaRecord],
    stored: StateRow | None,
    batch_time: int,
    *,
    more_follow: bool = False,
) -> Outcome:
    """Take a group through a batch as :func:`process` does, with the settings of the start that has planned it."""
    settings = settings.at(batch_time)
    start = settings.start
    if not start.replays:
        return process(settings, group_id, records, stored, batch_time, more_follow=more_follow)
    if not records and stored is not None and _waits_for_check(stored, start):
        return Outcome([check_row(settings, group_id)], stored, batch_time + REPEAT_CHECK_MS)
    if stored is not None and stored.replayed_epoch >= start.epoch:
        # The group has read a request of this start's; no earlier one follows.
        outcome = process(settings, group_id, records, stored, batch_time, more_follow=more_follow)
        return _with_replayed_epoch(outcome, start.epoch)
    replayed = _Replay(settings, group_id, stored)
    is_new = [not start.has_been_read_before(record.partition, record.offset) for record in records]
    for read in _by_start(settings, start, [record for record, new in zip(records, is_new, strict=True) if not new]):
        replayed.replay(read)
    if records and not any(is_new):
        wake_at = batch_time + CHECK_AFTER_MS if replayed.is_waiting else None
        return _with_replayed_epoch(Outcome(replayed.rows, replayed.state, wake_at), replayed.epoch)
    if records:
        replayed.advance_to(start, start.replay_until_time)
    new_records = [record for record, new in zip(records, is_new, strict=True) if new]
    outcome = process(settings, group_id, new_records, replayed.state, batch_time, more_follow=more_follow)
    return _with_replayed_epoch(outcome._replace(rows=replayed.rows + outcome.rows), replayed.epoch)


def _with_replayed_epoch(outcome: Outcome, epoch: int) -> Outcome:
    """The outcome with the mark of :meth:`StateRow.with_replayed_epoch`, which processing does not keep."""
    return outcome if outcome.state is None else outcome._replace(state=outcome.state.with_replayed_epoch(epoch))


def _by_start(settings: Settings, start: Start, records: Sequence[KafkaRecord]) -> Iterator[_ReadByStart]:
    """Divide requests that were read before."""
    read: _ReadByStart | None = None
    for record in records:
        reader = start_that_read(settings.starts, start, record.partition, record.offset)
        if read is not None and read.start is not reader:
            yield read
            read = None
        if read is None:
            read = _ReadByStart(reader, [])
        read.records.append(record)
        # A check that was appended before the start was read together with what follows.
        if record.value == DEADLINE_CHECK and record.timestamp >= reader.started_at:
            yield read
            read = None
    if read is not None:
        yield read


class _Replay:
    """A group whose requests are replayed."""

    def __init__(self, settings: Settings, group_id: str, stored: StateRow | None) -> None:
        self.rows: list[Row] = []
        self.state = stored
        self.is_waiting = False
        """Whether the group has a timer."""
        self.epoch = max(settings.start.copied_epoch, 0 if stored is None else stored.replayed_epoch)
        """The epoch of the start up to which earlier starts have been replayed to their end for the group."""
        self._settings = settings
        self._group_id = group_id

    def replay(self, read: _ReadByStart) -> None:
        """Take the group through requests that one start has read."""
        self.advance_to(read.start, read.start.last_batch_time)
        # No batch read a request before it was appended, or before the start.
        last = read.records[-1]
        time = max(last.timestamp, read.start.started_at)
        self._process(read.start, read.records, time, more_follow=last.value != DEADLINE_CHECK)

    def advance_to(self, start: Start, last_batch_time: int) -> None:
        """Fire what was due by the last batch (ms since the epoch of Unix) before a start, and before each start that
        has not been replayed; once for each, since later starts have renewed the sessions."""
        starts = [one for one in self._settings.starts if self.epoch < one.epoch < start.epoch]
        for one in [*starts, start] if self.epoch < start.epoch else []:
            self._fire_due_before(one, last_batch_time if one is start else one.last_batch_time)
            self.epoch = one.epoch

    def _fire_due_before(self, start: Start, last_batch_time: int) -> None:
        earlier = [one for one in self._settings.starts if one.started_at < start.started_at]
        if self.state is not None and earlier and last_batch_time:
            self._process(earlier[-1], [], last_batch_time)

    def _process(self, start: Start, records: list[KafkaRecord], time: int, *, more_follow: bool = False) -> None:
        of_start = self._settings.of(start)
        config = msgspec.structs.replace(of_start.config, late_answer_ms=None)
        settings = replace(of_start, config=config, is_replay=True)
        outcome = process(settings, self._group_id, records, self.state, time, more_follow=more_follow)
        # The checks that the group asked for then are in the log.
        self.rows += [row for row in outcome.rows if row.topic != settings.topics.requests]
        self.state, self.is_waiting = outcome.state, outcome.wake_at is not None


def _waits_for_check(stored: StateRow, start: Start) -> bool:
    """Whether the group has read nothing that was appended after the start."""
    try:
        group = load(stored)
    except (UnreadableSnapshot, UnreadablePart):
        return False
    return group is not None and max(group.clock, group.checked_until) < start.started_at
