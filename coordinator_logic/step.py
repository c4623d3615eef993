"""The entry point of the logic: one step takes a group through a batch of requests and the time that has passed.

Time is data. The time of a request is when the broker appended it, as far as that is plausible
(:mod:`coordinator_logic.timing.clocks`). A group handles requests in order, and "now" is the latest time that the group
has seen. A deadline at or before the time of a request fires before the request. After the last request, deadlines up
to the batch's time fire, or only up to the time until which the log has been read, if that is earlier; those that can
remove something wait ``expiry.allowance.ms`` longer. Deadlines fire in order, each with its own time as "now", and none
overtakes an earlier one.

So cutting the log into batches differently changes nothing, unless the time of a batch is later than a request that it
has not read (by more than the allowance, for deadlines that have it), or an answer is late
(:mod:`coordinator_logic.timing.sessions`). A member that joined before the end of the initial delay, but is read after
it, counts as a member that joined just after it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.group import Group
from coordinator_logic.group.deadlines import Deadlines, earliest
from coordinator_logic.group.timer import EXPIRY, Timer
from coordinator_logic.groups import type_of
from coordinator_logic.handlers import handle, refusal
from coordinator_logic.offsets.expiry import expire, reschedule
from coordinator_logic.records import JournalEntry
from coordinator_logic.states import State
from coordinator_logic.timing.clocks import append_distance, follow_clocks, latest_request_time, newest_append
from coordinator_logic.timing.loading import without_applied
from coordinator_logic.timing.sessions import remember_join_answers
from coordinator_logic.turn import FiredTimer, Output, Turn

SCANS_BEFORE_HEAP = 2
"""How often a step scans all timers before it makes a heap of them.

A step with a few heartbeats searches twice, at its first request and at its end, and two scans cost less than a heap.
"""


class StepResult(NamedTuple):
    """The result of a step: the group's new state, the responses to send and the records of what changed.

    ``group`` is None if it does not exist (any more). ``wake_at`` is the batch time (ms since the epoch) from which the
    group must be called even if no request has come; None if only a request can change it. ``moved_back`` has, by its
    place in the journal, how many committed offsets an entry made lower.
    """

    group: Group | None
    responses: list[Response]
    journal: list[JournalEntry]
    wake_at: int | None
    moved_back: Mapping[int, int] = MappingProxyType({})


def step(
    group_id: str,
    group: Group | None,
    requests: Sequence[Request],
    batch_time: int,
    *,
    started_at: int,
    config: CoordinatorConfig,
    read_until: int | None = None,
    deadlines_until: int | None = None,
    compares_clocks: bool = True,
) -> StepResult:
    """Take a group through the requests and up to the batch's time.

    All times are ms since the epoch. ``group`` may be changed in place. ``requests`` are the group's, ordered by
    (timestamp, partition, offset). ``started_at`` is the coordinator's last start that is not later than
    ``batch_time``. ``read_until`` is the time up to which the log has been read for this group, at most ``batch_time``;
    None: ``batch_time``. After the last request only deadlines up to it fire; if one between it and ``batch_time``
    waits, the group asks to be called in the next batch. A caller that splits a batch into several steps passes
    ``deadlines_until`` to all but the last: only deadlines up to it fire. Without ``compares_clocks`` the time of the
    batch is taken from its requests, and says nothing about the clocks.

    A Dead group (see :func:`coordinator_logic.group.dead_group`) answers every request
    COORDINATOR_NOT_AVAILABLE and does not change.
    """
    output = Output()
    if group is not None and group.part.state is State.DEAD:
        _refuse_all(group, requests, config, output)
        return StepResult(group, output.responses, output.journal, None)
    if group is not None and group.applied_until:
        requests = without_applied(group, requests)
    newest = newest_append(requests)
    distance = 0 if newest is None else append_distance(newest, batch_time, read_until)
    is_in_order = True
    if group is not None:
        if compares_clocks:
            is_in_order = follow_clocks(group, newest, distance, batch_time, config)
        started_at = max(started_at, group.sessions_from)
    group = _handle_all(group_id, group, requests, batch_time, is_in_order, started_at, config, output)
    if group is None:
        return StepResult(None, output.responses, output.journal, None, output.moved_back)
    if newest is not None:
        group.append_distance = distance if compares_clocks else 0
    until = batch_time if read_until is None or read_until > batch_time else read_until
    if deadlines_until is not None and deadlines_until < until:
        until = deadlines_until
    group, wake_at = _end_batch(group, until, batch_time, started_at, config, output)
    return StepResult(group, output.responses, output.journal, wake_at, output.moved_back)


def _handle_all(
    group_id: str,
    group: Group | None,
    requests: Sequence[Request],
    batch_time: int,
    is_in_order: bool,
    started_at: int,
    config: CoordinatorConfig,
    output: Output,
) -> Group | None:
    """Handle the requests; before each, fire what is due, unless their append times went back."""
    latest = latest_request_time(batch_time, config)
    for request in requests:
        now = request.place.timestamp if is_in_order else batch_time
        # Comparisons instead of min() and max(): this runs for every heartbeat.
        if now > latest:
            now = latest
        if group is not None:
            if now < group.clock:
                now = group.clock
            if is_in_order and now >= output.nothing_due_before:
                group = _fire_before(group, now, started_at, config, output)
        turn = Turn(group_id, group, now, request, config, output)
        recorded = len(output.journal)
        handle(turn, request)
        group = _end(turn, recorded)
    return group


def _refuse_all(group: Group, requests: Sequence[Request], config: CoordinatorConfig, output: Output) -> None:
    error = Error.COORDINATOR_NOT_AVAILABLE
    for request in requests:
        address, turn = request.address, Turn(group.group_id, group, group.clock, request, config, output)
        turn.reply(address, refusal(address.api, request.body, address.version, error), error)


def _end(turn: Turn, recorded: int) -> Group | None:
    """Advance the group's clock and expiry after a turn; ``recorded`` journal entries are of earlier turns."""
    group, journal = turn.existing, turn.output.journal
    has_entries = len(journal) > recorded
    if has_entries:
        turn.end()
    if group is not None:
        group.clock = turn.now
        if has_entries:
            reschedule(turn, [entry.record for entry in journal[recorded:]])
    return group


def _fire_before(
    group: Group | None, now: int, started_at: int, config: CoordinatorConfig, output: Output
) -> Group | None:
    while group and (due := _earliest(group, started_at, output)):
        deadline = due[1].deadline(started_at)
        if deadline > now:
            output.nothing_due_before = deadline
            break
        group = _fire(group, *due, started_at, config, output)
    return group


def _end_batch(
    group: Group, until: int, batch_time: int, started_at: int, config: CoordinatorConfig, output: Output
) -> tuple[Group | None, int | None]:
    """Fire what is due; the group after it, and the batch time from which it must be called again."""
    while due := _earliest(group, started_at, output):
        wake_at = wake_time(due[1], started_at, config)
        if wake_at > until:
            break
        left = _fire(group, *due, started_at, config, output)
        if left is None:
            return None, None
        group = left
    if remember_join_answers(group, output.responses, batch_time, config):
        return group, batch_time
    return group, None if due is None else max(wake_at, batch_time)


def _earliest(group: Group, started_at: int, output: Output) -> tuple[str, Timer] | None:
    output.searches += 1
    if output.searches <= SCANS_BEFORE_HEAP:
        return earliest(group.timers, started_at)
    deadlines = output.deadlines
    # A group that is deleted and created again within a step has other timers.
    if deadlines is None or deadlines.timers is not group.timers:
        deadlines = output.deadlines = Deadlines(group.timers, started_at)
    return deadlines.earliest()


def _fire(
    group: Group, key: str, timer: Timer, started_at: int, config: CoordinatorConfig, output: Output
) -> Group | None:
    deadline = timer.deadline(started_at)
    del group.timers[key]
    recorded = len(output.journal)
    turn = Turn(group.group_id, group, max(group.clock, deadline), FiredTimer(timer, deadline), config, output)
    if timer.kind == EXPIRY:
        expire(turn)
    else:
        type_of(group).fire(turn, timer)
    return _end(turn, recorded)


def wake_time(timer: Timer, started_at: int, config: CoordinatorConfig) -> int:
    """The batch time (ms since the epoch) from which a timer fires when no request follows its deadline."""
    allowance = config.expiry_allowance_ms if timer.effect.has_allowance else 0
    return timer.deadline(started_at) + allowance
