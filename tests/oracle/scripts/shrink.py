"""Shrink a script with a difference: remove steps while the difference remains (delta debugging)."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.oracle.campaign import Campaign
from tests.oracle.scripts.script import Script, Send, Wait
from tests.oracle.sides.lockstep import ScriptRun

Steps = list[Send | Wait]


async def shrink(run: ScriptRun, campaign: Campaign) -> ScriptRun:
    """Return the smallest run that was found with a difference of the same kind, or the given run."""
    smallest = run

    async def still_differs(steps: Steps) -> bool:
        nonlocal smallest
        again = await campaign.play(Script(f"{run.script.name} (shrunk)", steps))
        if again.difference != run.difference:
            return False
        if len(steps) < len(smallest.script.steps):
            smallest = again
        return True

    await minimized(_up_to_the_difference(run), still_differs)
    return smallest


def _up_to_the_difference(run: ScriptRun) -> Steps:
    """Return the steps that were sent before the difference."""
    steps: Steps = []
    sends = 0
    for step in run.script.steps:
        if sends == run.requests and isinstance(step, Send):
            break
        sends += isinstance(step, Send)
        steps.append(step)
    return steps


async def minimized(steps: Steps, still_differs: Callable[[Steps], Awaitable[bool]]) -> Steps:
    """Remove steps until no single step can be removed. Candidates of the same size are tried concurrently."""
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
