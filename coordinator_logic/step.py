"""The one entry point: what a group does with a batch of requests and the time that has passed.

Time is data. A request's time is when the broker appended it; within a group, requests are taken in order, and
"now" is the latest time the group has seen. A deadline at or before a request's time fires before the request.
After the last request, deadlines up to the batch's time fire; those that take something away wait
``expiry.allowance.ms`` longer. Deadlines fire one after the other, each with its own time as "now", and none
overtakes an earlier one. So it does not matter how the log is cut into batches, provided that a batch's time is not
later than a request that it has not read; for deadlines that take something away, not by more than the allowance.
(A member that joined before the end of the initial delay and is read after it counts as one that came just after.)
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.expiry import reschedule
from coordinator_logic.group import Group, Timer
from coordinator_logic.handlers import APIS
from coordinator_logic.records import JournalEntry
from coordinator_logic.states import State
from coordinator_logic.timers import earliest, fire, wake_time
from coordinator_logic.turn import FiredTimer, Output, Turn


class StepResult(NamedTuple):
    """What a step leaves and sends.

    ``group`` is None when there is none (any more). ``wake_at`` is the batch time (ms since the epoch) from
    which the group wants to be called although no request has come; None when it waits for requests only.
    """

    group: Group | None
    responses: list[Response]
    journal: list[JournalEntry]
    wake_at: int | None


def step(
    group_id: str,
    group: Group | None,
    requests: Sequence[Request],
    batch_time: int,
    *,
    started_at: int,
    config: CoordinatorConfig,
) -> StepResult:
    """Take a group through the requests and up to the batch's time.

    ``group`` may be changed in place. ``requests`` are the group's, in the order of (timestamp, partition,
    offset). Times are ms since the epoch; ``started_at`` is the coordinator's last start that is not later than
    ``batch_time``. A Dead group (see :func:`coordinator_logic.snapshot.quarantined`) refuses everything with
    COORDINATOR_NOT_AVAILABLE and stays as it is.
    """
    output = Output()
    for request in requests:
        now = request.place.timestamp
        if group is not None:
            now = max(now, group.clock)
            if group.state is not State.DEAD:
                group = _fire_before(group, now, started_at, config, output)
        group = _handle(group_id, group, request, now, config, output)
    if group is None or group.state is State.DEAD:
        return StepResult(group, output.responses, output.journal, None)
    group, wake_at = _fire_at_end_of_batch(group, batch_time, started_at, config, output)
    return StepResult(group, output.responses, output.journal, wake_at)


def _handle(
    group_id: str, group: Group | None, request: Request, now: int, config: CoordinatorConfig, output: Output
) -> Group | None:
    turn = Turn(group_id, group, now, request, config, output)
    api = APIS[request.address.api]
    if group is not None and group.state is State.DEAD:
        error = Error.COORDINATOR_NOT_AVAILABLE
        turn.reply(request.address, api.refuse(request.body, request.address.version, error), error)
        return group
    recorded = len(output.journal)
    api.handle(turn, request, request.body)
    return _end(turn, recorded)


def _end(turn: Turn, recorded: int) -> Group | None:
    """The group as the turn leaves it; ``recorded`` entries of the journal are of earlier turns."""
    group = turn.existing
    if group is not None:
        group.clock = turn.now
        records = [entry.record for entry in turn.output.journal[recorded:]]
        if records:
            reschedule(turn, records)
    return group


def _fire_before(
    group: Group | None, now: int, started_at: int, config: CoordinatorConfig, output: Output
) -> Group | None:
    if now < output.nothing_due_before:
        return group
    while group and (due := earliest(group, started_at)):
        deadline = due[1].deadline(started_at)
        if deadline > now:
            output.nothing_due_before = deadline
            break
        group = _fire(group, *due, started_at, config, output)
    return group


def _fire_at_end_of_batch(
    group: Group | None, batch_time: int, started_at: int, config: CoordinatorConfig, output: Output
) -> tuple[Group | None, int | None]:
    """The group after it, and the batch time from which it wants to be called again."""
    while group and (due := earliest(group, started_at)):
        wake_at = wake_time(due[1], started_at, config)
        if wake_at > batch_time:
            return group, wake_at
        group = _fire(group, *due, started_at, config, output)
    return group, None


def _fire(
    group: Group, key: str, timer: Timer, started_at: int, config: CoordinatorConfig, output: Output
) -> Group | None:
    deadline = timer.deadline(started_at)
    del group.timers[key]
    recorded = len(output.journal)
    turn = Turn(group.group_id, group, max(group.clock, deadline), FiredTimer(timer, deadline), config, output)
    fire(turn, timer)
    return _end(turn, recorded)
