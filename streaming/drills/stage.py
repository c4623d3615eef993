"""What a scenario works with: it says what it does, breaks something, and waits."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from streaming.drills.clients.live_clients import LiveClients
from streaming.drills.own_coordinator import OwnCoordinator
from streaming.drills.recording import Recording, StepKind
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.waiting import DrillFailed, await_until

ANSWER_LIMIT_SECONDS = 300.0
"""How long a drill waits for the first answer after its fault."""


class Stage:
    """The clients, the recording, and the coordinator if it is the drills' own. Call it from one thread."""

    def __init__(self, recording: Recording, clients: LiveClients, coordinator: OwnCoordinator | None = None) -> None:
        self.recording = recording
        self.clients = clients
        self._coordinator = coordinator
        self._broken_at = 0.0
        self._answered_since: float | None = None

    @property
    def coordinator(self) -> OwnCoordinator:
        """The drills' own coordinator."""
        assert self._coordinator is not None
        return self._coordinator

    def step(self, text: str, kind: StepKind = "step") -> None:
        """Say what is done next."""
        self.recording.step(kind, text)

    def fault(self, text: str) -> None:
        """Say which fault is made now; times to recovery count from here."""
        self._broken_at = self.recording.now()
        self.step(text, "fault")

    def repair(self, text: str) -> None:
        """Say with what the repair begins."""
        self._broken_at = self.recording.now()
        self.step(text, "repair")

    def watch_for(self, seconds: float, text: str) -> None:
        """Let this time pass: it is what is measured."""
        self.step(f"{text} for {seconds:g} s")
        time.sleep(seconds)

    def await_answers(self) -> None:
        """Wait for the first answer to a request that was sent since the fault, or since the repair began.

        Returns at once if that has come. Raises DrillFailed if there is none in time, or if the drills' own job has
        ended.
        """
        if self._answered_since == self._broken_at:
            return
        await_until(self._is_answered, lambda: "an answer to any request", ANSWER_LIMIT_SECONDS)
        self._answered_since = self._broken_at
        answered = self.recording.first_answer_after(self._broken_at)
        assert answered is not None
        self.step(f"the first answer came {answered - self._broken_at:.1f} s after that")

    def _is_answered(self) -> bool:
        if self.recording.first_answer_after(self._broken_at) is not None:
            return True
        if self._coordinator is not None and not self._coordinator.job.is_running:
            job = self._coordinator.job
            raise DrillFailed(f"{job.name} has ended; the end of its log:\n{job.tail()}")
        return False


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One fault with its repair.

    drill: the name on the command line; several scenarios may share it. what: what is done, for the report.
    prepare: what is done before the steady time begins. play: makes the fault, and repairs it.
    """

    drill: str
    title: str
    what: str
    objectives: RecoveryObjectives
    play: Callable[[Stage], None]
    prepare: Callable[[Stage], None] = lambda _stage: None
