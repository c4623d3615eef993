"""The scenarios of all drills, by what breaks."""

from streaming.drills.scenarios import checkpoints, clock, downtime, processes
from streaming.drills.stage import Scenario

__all__ = ["SCENARIOS"]

SCENARIOS: tuple[Scenario, ...] = (
    *processes.SCENARIOS,
    checkpoints.RESTORE,
    checkpoints.REBUILD,
    downtime.SCENARIO,
    checkpoints.DAMAGE,
    *clock.SCENARIOS,
)
"""In the order of ``drill all``."""
