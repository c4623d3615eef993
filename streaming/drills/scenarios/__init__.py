"""One module for each drill, with its scenarios."""

from collections.abc import Mapping

from streaming.drills.scenarios import broker, clock, damage, downtime, kill, rebuild, restore, standby
from streaming.drills.stage import Scenario

__all__ = ["SCENARIOS"]

SCENARIOS: Mapping[str, tuple[Scenario, ...]] = {
    "kill": kill.SCENARIOS,
    "standby": standby.SCENARIOS,
    "broker": broker.SCENARIOS,
    "restore": restore.SCENARIOS,
    "rebuild": rebuild.SCENARIOS,
    "downtime": downtime.SCENARIOS,
    "damage": damage.SCENARIOS,
    "clock": clock.SCENARIOS,
}
"""The scenarios of each drill, in the order of ``drill all``."""
