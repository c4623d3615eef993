"""Many scripts at a time against one broker, each in a group of its own; what they add up to."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coordinator_logic.config import CoordinatorConfig
from tests.oracle.connection import Connections
from tests.oracle.lockstep import Lockstep, Played
from tests.oracle.script import Script

AT_ONCE = 60
ROUNDS = (1, 3, 8, 20, 20, 20)
"""By what the number of scripts at a time is divided in each round. Doubt comes of a busy machine: who is played
again has more of it."""


@dataclass
class Tally:
    """What a campaign adds up to.

    ``runs`` have the last run of each script, in the scripts' order. ``requests``, ``compared``, ``answers`` and
    ``states`` are of all runs, of those that had to be repeated, too.
    """

    runs: list[Played] = field(default_factory=list)
    requests: int = 0
    compared: int = 0
    reordered: int = 0
    repeated: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    undecided: list[Played] = field(default_factory=list)
    not_seen_again: list[Played] = field(default_factory=list)
    differences: list[Played] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        """How many differences there are of each kind."""
        return Counter(str(played.difference) for played in self.differences)

    def count(self, played: Played) -> None:
        """Add one run."""
        self.requests += played.requests
        self.compared += played.compared
        self.reordered += played.reordered
        self.answers += played.answers
        self.states += played.states


class Campaign:
    """Plays scripts against one broker, so many at once."""

    def __init__(self, bootstrap_servers: str, config: CoordinatorConfig, *, at_once: int = AT_ONCE) -> None:
        self._connections = Connections(bootstrap_servers)
        self._config = config
        self._at_once = at_once

    async def judge(self, scripts: Sequence[Script], progress: Callable[[], None] = lambda: None) -> Tally:
        """Play every script until its result is beyond doubt; a difference has to be seen twice."""
        tally = Tally()
        latest: dict[int, Played] = {}
        seen: dict[int, Played] = {}
        waiting = list(range(len(scripts)))
        for number, divisor in enumerate(ROUNDS):
            tally.repeated += len(waiting) if number else 0
            at_once = max(self._at_once // divisor, 1)
            runs = await self._play_round([scripts[index] for index in waiting], at_once, progress)
            again = []
            for index, played in zip(waiting, runs, strict=True):
                latest[index] = played
                tally.count(played)
                if played.difference is not None and index in seen:
                    tally.differences.append(played)
                elif played.difference is None and played.doubt is None:
                    tally.not_seen_again += [seen[index]] if index in seen else []
                else:
                    again.append(index)
                    if played.difference is not None:
                        seen[index] = played
            waiting = again
            progress = _no_progress
        tally.undecided = [seen.get(index, latest[index]) for index in waiting]
        tally.runs = [latest[index] for index in range(len(scripts))]
        return tally

    async def _play_round(self, scripts: Sequence[Script], at_once: int, progress: Callable[[], None]) -> list[Played]:
        turns = asyncio.Semaphore(at_once)

        async def play(script: Script) -> Played:
            async with turns:
                played = await self.play(script)
            progress()
            return played

        return list(await asyncio.gather(*map(play, scripts)))

    async def play(self, script: Script) -> Played:
        """Play a script once."""
        group_id = f"oracle-{uuid.uuid4().hex[:12]}"
        return await Lockstep(script, group_id, self._connections, self._config).play()

    def close(self) -> None:
        """Close its connections."""
        self._connections.close()


def _no_progress() -> None:
    """Who is played again has been counted."""
