"""What a take-over and a hand-over spend their time on, as one line of the job's output.

Drills and measurements read the line back: it tells which phase of a slow take-over was slow.
"""

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

TAKE_OVER = "take-over"
"""From the moment in which a standby sees that no job is active to the end of its first batch."""

HAND_OVER = "hand-over"
"""From a request to stop to the announcement that another job may be active."""

FIRST_BATCH = {
    "first batch planned": ("latestOffset", "walCommit", "getBatch", "queryPlanning"),
    "first batch written": ("addBatch",),
}
"""The phases of the first batch, in this order, with those of Spark's report that they consist of."""

_LINE = re.compile(rf"({TAKE_OVER}|{HAND_OVER}) since (\S+): (.+)")
_PHASE = re.compile(r"(.+) (\d+) ms")


class Phases(msgspec.Struct, frozen=True):
    """The phases of one take-over or hand-over, in their order, each with its duration (ms)."""

    what: str
    began_at: datetime
    durations: dict[str, int]

    @property
    def seconds(self) -> float:
        """The time from the begin of the first phase to the end of the last one."""
        return sum(self.durations.values()) / 1000

    @property
    def ended_at(self) -> datetime:
        """When the last phase has ended."""
        return self.began_at + timedelta(seconds=self.seconds)

    def line(self) -> str:
        """The phases as a line, which :func:`read_phases` reads."""
        durations = ", ".join(f"{name} {duration} ms" for name, duration in self.durations.items())
        return f"{self.what} since {self.began_at.isoformat(timespec='milliseconds')}: {durations}"


def read_phases(line: str) -> Phases | None:
    """The phases that a line of a job's output tells; None if it is another line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    found = [_PHASE.fullmatch(each) for each in match[3].split(", ")]
    return Phases(match[1], datetime.fromisoformat(match[2]), {each[1]: int(each[2]) for each in found if each})


class PhaseRecorder:
    """Records the phases of a job's take-over and hand-over. Not thread-safe."""

    def __init__(self) -> None:
        self._phases: Phases | None = None
        self._last = 0.0

    def begin(self, what: str) -> None:
        """Begin :data:`TAKE_OVER` or :data:`HAND_OVER`."""
        self._phases, self._last = Phases(what, datetime.now(UTC), {}), time.monotonic()

    def end(self, phase: str) -> None:
        """Note that a phase ends now; without :meth:`begin`, nothing."""
        if self._phases is not None:
            now = time.monotonic()
            self._phases.durations[phase] = round(1000 * (now - self._last))
            self._last = now

    def end_first_batch(self, timestamp: datetime | None, spark_phases: Mapping[str, int]) -> None:
        """Add the phases of the first batch: ``timestamp`` and ``spark_phases`` (ms) are of Spark's report of it."""
        if self._phases is None or timestamp is None:
            return
        until_batch = 1000 * (timestamp - self._phases.ended_at).total_seconds()
        self._phases.durations["first batch begun"] = max(0, round(until_batch))
        for name, parts in FIRST_BATCH.items():
            self._phases.durations[name] = sum(spark_phases.get(part, 0) for part in parts)

    def finish(self) -> Phases | None:
        """What was recorded since :meth:`begin`; None if nothing was."""
        phases, self._phases = self._phases, None
        return phases
