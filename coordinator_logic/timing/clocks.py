"""Clocks that are wrong: append times that leap, and batch times that go back.

Append times come from the clocks of brokers, batch times from the driver's. Neither may do harm when it leaps:

- A broker's clock ahead: a request counts as appended at the latest ``expiry.allowance.ms`` after its batch's time.
- A broker's clock that went back: requests that are older than the group's clock by more than ``WENT_BACK_MS`` say
  nothing about when they were sent. They count as appended at the batch's time, and no deadline fires between them.
- The driver's clock that went back: what the group has stored about the future counts as now, with full timeouts.
- Clocks that have moved against each other since the group's last request: the time between the two requests is not the
  time that has passed, so all sessions count from the later one. This is how a wrong clock returns.

The driver's clock ahead needs no rule here: deadlines that can remove something fire up to ``read_until``, which the
job takes from append times.
"""

from collections.abc import Sequence

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.timer import Effect, Timer
from coordinator_logic.timing.sessions import NEVER_LATE_MS, renew_sessions_after_late_answer

WENT_BACK_MS = 2_000
"""Up to this difference an append time that is older than the group's clock is in order.

Brokers' clocks differ a little, and requests of one group may be in several partitions. It is a third of the shortest
session that Kafka allows by default.
"""


def latest_request_time(batch_time: int, config: CoordinatorConfig) -> int:
    """The latest time as which a request of the batch counts (ms since the epoch).

    A record that the batch reads was appended before the batch was planned, so a later append time is a wrong one.
    """
    return batch_time + config.expiry_allowance_ms


def newest_append(requests: Sequence[Request]) -> int | None:
    """The latest append time of the requests (ms since the epoch); None without requests."""
    if len(requests) < 2:
        return requests[0].place.timestamp if requests else None
    return max([request.place.timestamp for request in requests])


def append_distance(appended_at: int, batch_time: int, read_until: int | None) -> int:
    """How much later (ms) a record was appended than the time up to which the group is known to be, by their clocks.

    That time is the batch's, or the record's own while later records may be unread: then the distance is that from the
    batch's time, too, and negative. Times are ms since the epoch; ``read_until`` is that of the step.
    """
    if appended_at < batch_time:
        if read_until is None or read_until >= batch_time:
            return 0
        if read_until > appended_at:
            return read_until - batch_time
    return appended_at - batch_time


def follow_clocks(group: Group, newest: int | None, distance: int, batch_time: int, config: CoordinatorConfig) -> bool:
    """Correct a group's times before a batch for clocks that have leapt, and for an answer that was late.

    ``newest`` is that of :func:`newest_append`, ``distance`` that of :func:`append_distance`. Returns False if the
    append times went back: even the newest is older than the group's clock by more than ``WENT_BACK_MS``.
    """
    latest = latest_request_time(batch_time, config)
    if group.clock > latest or group.sessions_from > latest:
        bring_back(group, batch_time)
    if group.join_answered_at:
        renew_sessions_after_late_answer(group, batch_time, config)
    if newest is None:
        return True
    renew_sessions_if_clocks_moved(group, newest, distance, batch_time, config)
    return newest >= group.clock - WENT_BACK_MS


def renew_sessions_if_clocks_moved(
    group: Group, appended_at: int, distance: int, batch_time: int, config: CoordinatorConfig
) -> None:
    """Let sessions count from a record if the clocks have moved against each other since the one before it.

    They have if the record's distance has grown, or has fallen although it was ahead of its batch. A distance that
    falls otherwise is no sign: the batch may be late. ``appended_at`` and ``batch_time`` are ms since the epoch,
    ``distance`` is that of :func:`append_distance`; the group keeps it if the clocks have moved.
    """
    bound = movement_bound(config)
    before = group.append_distance
    change = distance - before
    if change > bound or (before > bound and -change > bound):
        group.sessions_from = max(group.sessions_from, min(appended_at, latest_request_time(batch_time, config)))
        group.append_distance = distance


def movement_bound(config: CoordinatorConfig) -> int:
    """Up to how much (ms) a distance may change while the clocks agree."""
    return (config.late_answer_ms or NEVER_LATE_MS) - config.expiry_allowance_ms


def bring_back(group: Group, batch_time: int) -> None:
    """Bring a group whose time is later than the batch's (ms since the epoch) back to it.

    Without this nothing would fire until the driver's clock reaches the old time again. Timers that were armed in the
    future count from now, and so do all sessions; the expiry of offsets keeps its deadline.
    """
    group.clock = min(group.clock, batch_time)
    group.sessions_from = batch_time
    group.join_answered_at = min(group.join_answered_at, batch_time)
    group.checked_until = min(group.checked_until, batch_time)
    group.next_check_at = 0
    for key, timer in group.timers.items():
        if timer.armed_at > batch_time:
            group.timers[key] = _armed_now(timer, batch_time)


def _armed_now(timer: Timer, now: int) -> Timer:
    timeout_ms = timer.timeout_ms
    if timer.effect is Effect.EXPIRES_OFFSETS:
        timeout_ms += timer.armed_at - now
    return msgspec.structs.replace(timer, armed_at=now, timeout_ms=timeout_ms)
