"""Faults of the machine: clocks that are stepped, and a full disk."""

import time
from collections.abc import Callable
from random import Random

from tests.recovery.chaos.clocks import SteppedClock
from tests.recovery.chaos.disk import full
from tests.recovery.chaos.faults.fault import NotPossibleHere
from tests.recovery.chaos.stage import Stage

STEPS_MS = (-3_600_000, -60_000, -5_000, 5_000, 60_000, 3_600_000)
WRONG_SECONDS = (2.0, 7.0)
FULL_SECONDS = (1.0, 5.0)


def step_job_clock(stage: Stage, chance: Random) -> str:
    """The clock of the job's driver and workers is stepped, and returns.

    A job whose clock goes back by 10 s ends at once: it is started with the wrong clock, and runs for a while.
    """
    return f"the job's clock {_step(stage.job_clock, chance, stage.ensure_active)}"


def step_broker_clock(stage: Stage, chance: Random) -> str:
    """The broker's clock is stepped, and returns."""
    return f"the broker's clock {_step(stage.cluster.clock, chance, lambda: None)}"


def fill_disk(stage: Stage, chance: Random) -> str:
    """The disk of the checkpoint is full for a while."""
    seconds = chance.uniform(*FULL_SECONDS)
    with full(stage.checkpoint.parent):
        time.sleep(seconds)
    return f"the disk of the checkpoint was full for {seconds:.1f} s"


def _step(clock: SteppedClock | None, chance: Random, ensure_running: Callable[[], None]) -> str:
    if clock is None:
        raise NotPossibleHere("no clock can be stepped here: it needs a C compiler")
    ahead_ms, seconds = chance.choice(STEPS_MS), chance.uniform(*WRONG_SECONDS)
    further_seconds = chance.uniform(*WRONG_SECONDS)
    began = time.monotonic()
    clock.set_ahead(ahead_ms)
    try:
        time.sleep(seconds)
        ensure_running()
        time.sleep(further_seconds)
        # It may have been about to end when it was looked at first.
        ensure_running()
    finally:
        clock.set_ahead(0)
    return f"was {ahead_ms / 1000:+g} s ahead for {time.monotonic() - began:.1f} s"
