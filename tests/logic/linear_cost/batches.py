"""Batches of any size, and how their costs compare."""

import math
import time
from collections.abc import Callable, Sequence
from itertools import count

from coordinator_logic import snapshot
from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.messages import RequestBody
from coordinator_logic.step import StepResult, step
from tests.support.garbage import without_collections

Scenario = Callable[[int], Callable[[], StepResult]]
"""Prepares a batch of a size; the result runs it."""

SMALL, LARGE = 1_000, 4_000
MANY_SMALL, MANY_LARGE = 5_000, 20_000
"""For scenarios that are quick for each member, so that their fixed costs do not count."""
MOST_TIMES = 8.0
FEWEST_RUNS, MOST_RUNS = 3, 12

GROUP_ID = "group"
SESSION_MS = 45_000
NOW = 1_700_000_000_000
CONFIG = CoordinatorConfig(offsets_retention_check_interval_ms=10 * 365 * 24 * 3_600_000, logic_version=LOGIC_VERSION)
"""Without a check for obsolete groups, which would delete a group of unused member ids before they expire."""

OFFSETS = count()


def request(api: str, version: int, body: RequestBody) -> Request:
    offset = next(OFFSETS)
    return Request(Place(NOW, 0, offset), ReplyAddress(api, version, f"{offset}", 0, NOW), "client", "/host", body)


def batch(stored: bytes | None, requests: Sequence[Request], at: int = NOW) -> StepResult:
    """Run a batch from a snapshot; it ends at the time ``at``."""
    group = None if stored is None else snapshot.decode(stored)
    return step(GROUP_ID, group, requests, at, started_at=0, config=CONFIG)


def stored(result: StepResult) -> bytes:
    assert result.group is not None
    return snapshot.encode(result.group)


def grows_linearly(scenario: Scenario, small: int = SMALL, large: int = LARGE) -> None:
    """Assert that the larger batch, of four times the size, costs about four times as much.

    A busy machine lengthens some runs, but the least times only fall: they are measured until they agree.
    """
    run_small, run_large = scenario(small), scenario(large)
    least_small = least_large = math.inf
    for number in range(MOST_RUNS):
        least_small, least_large = min(least_small, _seconds(run_small)), min(least_large, _seconds(run_large))
        if number + 1 >= FEWEST_RUNS and least_large < MOST_TIMES * least_small:
            return
    raise AssertionError(f"{large}: {least_large:.3f} s, {small}: {least_small:.3f} s")


def _seconds(run: Callable[[], StepResult]) -> float:
    # A collection looks at all objects of the test run, however few of them are the batch's.
    with without_collections():
        began = time.process_time()
        run()
        return time.process_time() - began
