"""When a group's timers fire, and that of the expiry of offsets; the group's type knows all others.

Arming a key that is armed replaces its timer. :class:`~coordinator_logic.turn.Turn` arms them.
"""

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group.timer import EXPIRY, Timer
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.offsets.expiry import expire
from coordinator_logic.turn import Turn


def wake_time(timer: Timer, started_at: int, config: CoordinatorConfig) -> int:
    """The batch time (ms since the epoch) from which a timer fires when no request follows its deadline."""
    allowance = config.expiry_allowance_ms if timer.effect.has_allowance else 0
    return timer.deadline(started_at) + allowance


def fire(turn: Turn, timer: Timer) -> None:
    """Carry out the effect of a timer, which is no longer among the group's timers."""
    if timer.kind == EXPIRY:
        expire(turn)
    else:
        type_of(turn.group).fire(turn, timer)
