"""Run many scripts concurrently against one broker, each in its own group, and sum up the results."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coordinator_logic.config import CoordinatorConfig
from tests.oracle.scripts.script import Script
from tests.oracle.sides.connection import Connections
from tests.oracle.sides.lockstep import Lockstep, ScriptRun

AT_ONCE = 60
ROUNDS = (1, 3, 8, 20, 20, 20)
"""The divisor of the number of concurrent scripts in each round.

Runs are inconclusive if the machine is busy, so later rounds run fewer scripts at a time.
"""


@dataclass
class CampaignResult:
    """The result of a campaign.

    ``runs`` has the last run of each script, in the order of the scripts. ``requests``, ``compared``, ``reordered``,
    ``answers`` and ``states`` count all runs, including repeated ones.
    """

    runs: list[ScriptRun] = field(default_factory=list)
    requests: int = 0
    compared: int = 0
    reordered: int = 0
    repeated: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    inconclusive: list[ScriptRun] = field(default_factory=list)
    not_reproduced: list[ScriptRun] = field(default_factory=list)
    differences: list[ScriptRun] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        """The number of differences of each kind."""
        return Counter(str(run.difference) for run in self.differences)

    def count(self, run: ScriptRun) -> None:
        """Add the counts of one run."""
        self.requests += run.requests
        self.compared += run.compared
        self.reordered += run.reordered
        self.answers += run.answers
        self.states += run.states


class Campaign:
    """Runs scripts against one broker, ``at_once`` of them concurrently."""

    def __init__(self, bootstrap_servers: str, config: CoordinatorConfig, *, at_once: int = AT_ONCE) -> None:
        self._connections = Connections(bootstrap_servers)
        self._config = config
        self._at_once = at_once

    async def run(self, scripts: Sequence[Script], progress: Callable[[], None] = lambda: None) -> CampaignResult:
        """Run every script until its result is conclusive. A difference counts if it occurs twice."""
        result = CampaignResult()
        latest: dict[int, ScriptRun] = {}
        first_difference: dict[int, ScriptRun] = {}
        waiting = list(range(len(scripts)))
        for number, divisor in enumerate(ROUNDS):
            result.repeated += len(waiting) if number else 0
            at_once = max(self._at_once // divisor, 1)
            runs = await self._run_round([scripts[index] for index in waiting], at_once, progress)
            again = []
            for index, run in zip(waiting, runs, strict=True):
                latest[index] = run
                result.count(run)
                if run.difference is not None and index in first_difference:
                    result.differences.append(run)
                elif run.difference is None and run.inconclusive is None:
                    result.not_reproduced += [first_difference[index]] if index in first_difference else []
                else:
                    again.append(index)
                    if run.difference is not None:
                        first_difference[index] = run
            waiting = again
            progress = _no_progress
        result.inconclusive = [first_difference.get(index, latest[index]) for index in waiting]
        result.runs = [latest[index] for index in range(len(scripts))]
        return result

    async def _run_round(
        self, scripts: Sequence[Script], at_once: int, progress: Callable[[], None]
    ) -> list[ScriptRun]:
        slots = asyncio.Semaphore(at_once)

        async def play(script: Script) -> ScriptRun:
            async with slots:
                run = await self.play(script)
            progress()
            return run

        return list(await asyncio.gather(*map(play, scripts)))

    async def play(self, script: Script) -> ScriptRun:
        """Run a script once."""
        group_id = f"oracle-{uuid.uuid4().hex[:12]}"
        return await Lockstep(script, group_id, self._connections, self._config).play()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


def _no_progress() -> None:
    """Repeated scripts do not count as progress."""
