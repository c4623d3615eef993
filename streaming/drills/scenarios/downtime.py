"""The job is away for longer than sessions last, while requests pile up."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from streaming.drills.clients.live_clients import LiveClients
from streaming.drills.clients.members import SESSION_TIMEOUT_MS
from streaming.drills.clients.offsets import commit, commit_error
from streaming.drills.clients.probe import ANSWER_LIMIT_MS
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import await_until

AWAY_SECONDS = 2 * SESSION_TIMEOUT_MS / 1000
REQUESTS, GROUPS = 10_000, 200
WORK_OFF_SECONDS = 300.0


class Backlog:
    """Commits of many groups that are sent while nobody reads them. Thread-safe."""

    def __init__(self, clients: LiveClients) -> None:
        self._clients = clients
        self._changed = threading.Lock()
        self._answered = 0

    @property
    def is_worked_off(self) -> bool:
        """Whether every request has its answer."""
        return self._answered == REQUESTS

    @property
    def waiting(self) -> int:
        """How many requests have no answer."""
        return REQUESTS - self._answered

    def send(self) -> None:
        """Append all requests."""
        client = self._clients.client(ANSWER_LIMIT_MS)
        for number in range(REQUESTS):
            offset, index = divmod(number, GROUPS)
            group = f"drill-backlog-{index}"
            commit(client, group, {0: offset}).add_done_callback(self._on_answer(group, offset))

    def _on_answer(self, group: str, offset: int) -> Callable[[Future[Any]], None]:
        def on_answer(answered: Future[Any]) -> None:
            if error := commit_error(answered):
                self._clients.recording.notice("backlog", "error", error)
            else:
                self._clients.ledger.acknowledge((group, 0), offset)
            with self._changed:
                self._answered += 1

        return on_answer


def play(stage: Stage) -> None:
    """Stop the job, let requests pile up, start the job, and wait until they are answered."""
    coordinator, backlog = stage.coordinator, Backlog(stage.clients)
    stage.fault("SIGTERM to the job")
    coordinator.job.process.terminate()
    stage.step(f"{REQUESTS:,} commits of {GROUPS} groups are sent")
    backlog.send()
    stage.watch_for(AWAY_SECONDS, "the job is away")
    stage.repair("the job is started")
    coordinator.start_job()
    began = stage.recording.now()
    stage.await_answers()
    await_until(
        lambda: backlog.is_worked_off,
        lambda: f"answers to {backlog.waiting:,} requests of the backlog",
        WORK_OFF_SECONDS,
    )
    stage.step(f"the backlog is worked off, {stage.recording.now() - began:.1f} s after the start of the job")


SCENARIO = Scenario(
    drill="downtime",
    title="The job is away while requests pile up",
    what=f"The job is stopped for more than {AWAY_SECONDS:g} s, twice as long as the members' sessions, and "
    f"{REQUESTS:,} more requests wait when it starts. Members that kept sending heartbeats must not be expelled.",
    objectives=RecoveryObjectives(first_answer_seconds=60),
    play=play,
)
