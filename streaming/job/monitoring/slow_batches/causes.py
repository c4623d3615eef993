"""Which cause a slow batch had, given what was used meanwhile and what its job is used to. Pure.

A batch is compared with the batches before it. What it took beyond their time is explained by what it waited for beyond
their share: a resource that is always used as much explains nothing.
"""

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from streaming.job.monitoring.slow_batches.usage import Resource, Used

SLOW_MS = 400
"""A batch that takes longer is slow, if others take less: an answer waits for one batch, and half of the one before."""

USUAL_FACTOR = 1.5
"""A batch that takes no longer than this many usual ones is a usual one, however long."""

KEPT_BATCHES = 60
NEEDED_BATCHES = 20
"""With fewer batches to compare with, a slow one is one of the job's start: everything happens for the first time."""

LEAST_SHARE = 0.25
"""A cause explains at least so much of what a batch took beyond the usual time."""

Cause = Literal[
    "start",
    "usual",
    "requests",
    "garbage-collection",
    "compilation",
    "other-processes",
    "processors",
    "disk",
    "memory",
    "cpu-quota",
    "host",
    "brokers",
    "checkpoint",
    "state-store",
    "planning",
    "unexplained",
]

CAUSES: Mapping[Cause, str] = {
    "start": "the job has just started",
    "usual": "the job's batches take that long",
    "requests": "more requests",
    "garbage-collection": "garbage collection",
    "compilation": "Java's compiler",
    "other-processes": "other processes",
    "processors": "waiting for a processor",
    "disk": "waiting for the disk",
    "memory": "waiting for memory",
    "cpu-quota": "the quota of CPU time",
    "host": "the host's other guests",
    "brokers": "the brokers' answer about the end of the log",
    "checkpoint": "writing the checkpoint's logs",
    "state-store": "committing the groups' states",
    "planning": "Spark's planning",
    "unexplained": "none of what is measured",
}
"""Each cause in words."""

WHOLE_BATCH, WORK = "triggerExecution", "addBatch"
"""Spark's names of the whole batch, and of the phase in which its task runs."""

GROUPS, STATE_COMMIT = "groups", "stateCommit"
"""Parts of the work, by the operator's own report; the phase's name is left for its rest."""

PHASES: Mapping[str, Cause] = {
    "latestOffset": "brokers",
    "walCommit": "checkpoint",
    "commitOffsets": "checkpoint",
    "commitBatch": "checkpoint",
    STATE_COMMIT: "state-store",
    "queryPlanning": "planning",
    "getBatch": "planning",
}
"""The phases that are a cause of their own, where no resource explains them. The work itself is not."""


class Batch(NamedTuple):
    """A completed batch: Spark's number, its start and end (seconds since the epoch), the requests that it has read,
    Spark's phases (ms), and what was used meanwhile."""

    number: int
    began: float
    ended: float
    requests: int
    phases: Mapping[str, int]
    used: Used

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.ended - self.began) * 1000


class Finding(NamedTuple):
    """Why a batch was slow: the main cause; how long such a batch usually takes; and by cause what was lost (ms)."""

    batch: Batch
    cause: Cause
    usual_ms: float
    lost_ms: Mapping[Cause, float]
    longest_phase: tuple[str, float, float] | None
    """The phase that took the longest beyond its usual time: its name, what it took, and what it usually takes (ms)."""

    def __str__(self) -> str:
        """One line, for the log."""
        parts = [
            f"{CAUSES[cause]} {lost:.0f} ms"
            for cause, lost in sorted(self.lost_ms.items(), key=lambda item: -item[1])
            if lost >= max(1.0, LEAST_SHARE / 5 * (self.batch.milliseconds - self.usual_ms))
        ]
        text = (
            f"batch {self.batch.number} took {self.batch.milliseconds:,.0f} ms for {self.batch.requests:,} requests, "
            f"usually {self.usual_ms:,.0f} ms; cause: {CAUSES[self.cause]}"
        )
        if self.longest_phase is not None:
            name, took, usual = self.longest_phase
            parts.append(f"{name} took {took:,.0f} ms, usually {usual:,.0f} ms")
        return f"{text} ({'; '.join(parts)})" if parts else text


class SlowBatches:
    """Judges the batches of one query, in their order. ``cores`` is the number of the host's processors.

    Not thread-safe.
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._batches: deque[Batch] = deque(maxlen=KEPT_BATCHES)

    def judge(self, batch: Batch) -> Finding | None:
        """Note a batch; returns why it was slow, or None if it was not."""
        finding = self._finding(batch) if batch.milliseconds > SLOW_MS else None
        self._batches.append(batch)
        return finding

    def _finding(self, batch: Batch) -> Finding:
        earlier = list(self._batches)
        if len(earlier) < NEEDED_BATCHES:
            return Finding(batch, "start", 0.0, {}, None)
        usual_ms = statistics.median(each.milliseconds for each in earlier)
        if batch.milliseconds <= USUAL_FACTOR * usual_ms:
            return Finding(batch, "usual", usual_ms, {}, None)
        excess = batch.milliseconds - usual_ms
        lost = {
            cause: min(ms, excess)
            for cause, ms in {
                "requests": _lost_to_requests(batch, earlier),
                **_lost_to_resources(_beyond(batch, earlier), self._cores),
            }.items()
            if ms > 0
        }
        phases = {
            name: (ms, statistics.median(each.phases.get(name, 0) for each in earlier))
            for name, ms in batch.phases.items()
            if name != WHOLE_BATCH
        }
        longest = max(phases, key=lambda name: phases[name][0] - phases[name][1], default=None)
        cause = max(lost, key=lambda each: lost[each], default=None)
        if cause is None or lost[cause] < LEAST_SHARE * excess:
            cause = "unexplained" if longest is None else _of_phase(longest, *phases[longest], excess)
        return Finding(batch, cause, usual_ms, lost, None if longest is None else (longest, *phases[longest]))


def _of_phase(name: str, ms: float, usual_ms: float, excess: float) -> Cause:
    return PHASES.get(name, "unexplained") if ms - usual_ms >= LEAST_SHARE * excess else "unexplained"


def _lost_to_requests(batch: Batch, earlier: Sequence[Batch]) -> float:
    """What the batch took because it has read more requests than others (ms): by the median slope between batches."""
    slopes = [
        (one.milliseconds - other.milliseconds) / (one.requests - other.requests)
        for one, other in combinations(earlier, 2)
        if one.requests != other.requests
    ]
    more = batch.requests - statistics.median(each.requests for each in earlier)
    return max(0.0, statistics.median(slopes) * more) if slopes and more > 0 else 0.0


def _beyond(batch: Batch, earlier: Sequence[Batch]) -> dict[Resource, float]:
    """What the batch has used beyond the share of the time that the others have used (ms); no less than 0."""
    known = [each for each in earlier if each.used]
    seconds = sum(each.milliseconds for each in known) / 1000
    if not seconds:
        return {}
    usual = {resource: sum(each.used.get(resource, 0.0) for each in known) / seconds for resource in batch.used}
    return {
        resource: max(0.0, used * 1000 - usual[resource] * batch.milliseconds) for resource, used in batch.used.items()
    }


def _lost_to_resources(beyond: Mapping[Resource, float], cores: int) -> dict[Cause, float]:
    """What the batch took because of each of these resources (ms), given their use beyond the usual (ms).

    A compiler and other processes delay a batch only while it waits for a processor.
    """
    waiting = beyond.get("waiting-for-cpu", 0.0)
    compiling = min(beyond.get("compiling", 0.0), waiting)
    more = beyond.get("machine-cpu", 0.0) - beyond.get("job-cpu", 0.0)
    others = min(max(0.0, more), waiting - compiling)
    return {
        "garbage-collection": beyond.get("collecting", 0.0),
        "compilation": compiling,
        "other-processes": others,
        "processors": waiting - compiling - others,
        "disk": beyond.get("waiting-for-disk", 0.0),
        "memory": beyond.get("waiting-for-memory", 0.0),
        "cpu-quota": beyond.get("throttled", 0.0),
        "host": beyond.get("stolen", 0.0) / cores + beyond.get("slowed", 0.0),
    }
