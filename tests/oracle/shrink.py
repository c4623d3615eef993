"""Makes a script that shows a difference small: takes steps out as long as the difference stays (ddmin)."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.oracle.campaign import Campaign
from tests.oracle.lockstep import Played
from tests.oracle.script import Script, Send, Wait

Steps = list[Send | Wait]


async def shrink(played: Played, campaign: Campaign) -> Played:
    """The smallest run found that shows a difference of the same kind; the given one if none is smaller."""
    smallest = played

    async def still_differs(steps: Steps) -> bool:
        nonlocal smallest
        again = await campaign.play(Script(f"{played.script.name} (shrunk)", steps))
        if again.difference != played.difference:
            return False
        if len(steps) < len(smallest.script.steps):
            smallest = again
        return True

    await without_superfluous(_up_to_the_difference(played), still_differs)
    return smallest


def _up_to_the_difference(played: Played) -> Steps:
    """The steps that were played at all."""
    steps: Steps = []
    sends = 0
    for step in played.script.steps:
        if sends == played.requests and isinstance(step, Send):
            break
        sends += isinstance(step, Send)
        steps.append(step)
    return steps


async def without_superfluous(steps: Steps, still_differs: Callable[[Steps], Awaitable[bool]]) -> Steps:
    """Steps of which none, and no run of them, can be left out. Candidates of one size are tried at once."""
    size = max(len(steps) // 2, 1)
    while True:
        candidates = [steps[:start] + steps[start + size :] for start in range(0, len(steps), size)]
        verdicts = await asyncio.gather(*map(still_differs, candidates))
        shorter = next((c for c, differs in zip(candidates, verdicts, strict=True) if differs and c), None)
        if shorter is not None:
            steps = shorter
            size = min(size, max(len(steps) // 2, 1))
        elif size == 1:
            return steps
        else:
            size //= 2
