"""Deadline checks: a member is expelled only when the log has been read beyond its deadline.

A batch may leave requests unread, and nothing in a batch tells a group whether heartbeats of its members are among
them. So the time of a batch is no evidence. When a deadline that can remove something has passed, the group asks for a
check: an event that the job appends to the group's own partition of the requests. When the group reads the check, it
has read everything that was appended before it, and the deadlines up to the check's append time fire. Behind a backlog,
the check waits as long as the heartbeats do.

The initial delay ends by the time of the batch, because its end removes nothing.
"""

from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.group.deadlines import earliest
from coordinator_logic.group.timer import Effect
from coordinator_logic.timing.clocks import (
    WENT_BACK_MS,
    append_distance,
    movement_bound,
    renew_sessions_if_clocks_moved,
)

REPEAT_AFTER_MS = 60_000
"""A check that was not read for so long counts as lost, for example to the retention of the requests."""


class Schedule(NamedTuple):
    """Whether the group asks for a check now, and the batch time (ms since the epoch) from which it must be called."""

    asks: bool
    wake_at: int


def note_check(
    group: Group, appended_at: int, batch_time: int, config: CoordinatorConfig, *, compares_clocks: bool = True
) -> None:
    """Note that the group reads a check. Its append time counts as not later than the batch (ms since the epoch).

    If the group's clock is ahead of the broker's, the check proves that the log was read up to the batch that asked for
    it. A broker's clock that went back explains that, and so does a driver's clock that is ahead; if it has leapt
    since the group's last request, the time until the asking batch has not passed, and all sessions count anew. Without
    ``compares_clocks``, as in a step, the append time is taken as it is.
    """
    if compares_clocks:
        appended_at = _plausible_append(group, appended_at, batch_time, config)
    group.checked_until = max(group.checked_until, min(appended_at, batch_time))
    group.next_check_at = 0


def _plausible_append(group: Group, appended_at: int, batch_time: int, config: CoordinatorConfig) -> int:
    """The append time of a check, or the time of the batch that asked for it if the clocks contradict each other."""
    distance = append_distance(appended_at, batch_time, read_until=0)
    renew_sessions_if_clocks_moved(group, appended_at, distance, batch_time, config)
    if appended_at >= group.clock - WENT_BACK_MS:
        return appended_at
    asked_at = group.next_check_at - REPEAT_AFTER_MS
    # Unlike the distance of another record, that from the asking batch does not fall with a late batch.
    distance = appended_at - asked_at
    if group.append_distance - distance > movement_bound(config):
        group.sessions_from = max(group.sessions_from, batch_time)
        group.append_distance = distance
    return asked_at


def renew_sessions_after_old_join(
    group: Group, answered_from: int | None, batch_time: int, config: CoordinatorConfig
) -> None:
    """Let sessions count from this batch if it answers a JoinGroup that has waited in a backlog.

    The members could send no heartbeat before that answer. ``answered_from`` is the time of the first event of the
    group in the batch (ms since the epoch), None without events. Call it after the step.
    """
    if answered_from is None or group.join_answered_at != batch_time or config.late_answer_ms is None:
        return
    if batch_time - answered_from > config.late_answer_ms:
        group.sessions_from = batch_time


def due_until(group: Group, batch_time: int, started_at: int, config: CoordinatorConfig) -> int | None:
    """The ``read_until`` of a further step of the batch (ms since the epoch), None if no deadline fires any more.

    A step ends with the deadline of a rebalance, if there is one: it answers members that could not send heartbeats,
    and :func:`renew_sessions_after_old_join` must come before their sessions end.
    """
    due = _earliest(group, started_at)
    if due is None or due[1] > batch_time:
        return None
    effect, deadline = due
    if effect is Effect.ENDS_DELAY:
        return deadline
    allowance = config.expiry_allowance_ms
    if deadline > group.checked_until or deadline + allowance > batch_time:
        return None
    started_at = max(started_at, group.sessions_from)
    rebalances = (timer.deadline(started_at) for timer in group.timers.values() if timer.effect.answers_joins)
    return min([group.checked_until, *rebalances]) + allowance


def schedule_check(group: Group, batch_time: int, started_at: int, reads_check: bool, wake_at: int) -> Schedule:
    """Decide after the batch's steps whether the group asks for a check.

    All times are ms since the epoch. ``reads_check``: whether the group has read a check in this batch. ``wake_at`` is
    that of the last step.
    """
    has_answered_join = group.join_answered_at == batch_time
    due = _earliest(group, started_at)
    if due is None or due[1] <= group.checked_until:
        return Schedule(False, wake_at)
    deadline = due[1]
    # The driver's clock may have gone back since the group last asked.
    group.next_check_at = min(group.next_check_at, batch_time + REPEAT_AFTER_MS)
    if deadline <= batch_time and reads_check:
        # The deadline has passed by the driver's clock, but not by the broker's: wait for as long as is left there.
        group.next_check_at = batch_time + min(deadline - group.checked_until, REPEAT_AFTER_MS)
    asks = batch_time >= max(deadline, group.next_check_at)
    if asks:
        group.next_check_at = batch_time + REPEAT_AFTER_MS
    return Schedule(asks, batch_time if has_answered_join else max(deadline, group.next_check_at))


def _earliest(group: Group, started_at: int) -> tuple[Effect, int] | None:
    """The effect of the group's first timer, and its deadline (ms since the epoch)."""
    started_at = max(started_at, group.sessions_from)
    due = earliest(group.timers, started_at)
    return None if due is None else (due[1].effect, due[1].deadline(started_at))
