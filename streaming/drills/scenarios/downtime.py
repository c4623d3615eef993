"""The job is away for longer than sessions last, while requests pile up."""

from concurrent.futures import Future
from functools import partial
from typing import Any

from streaming.drills.clients.live_clients import LiveClients
from streaming.drills.clients.members import SESSION_TIMEOUT_MS
from streaming.drills.clients.offsets import commit
from streaming.drills.clients.probe import ANSWER_LIMIT_MS
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import await_until

AWAY_SECONDS = 2 * SESSION_TIMEOUT_MS / 1000
REQUESTS, GROUPS = 10_000, 200
WORK_OFF_SECONDS = 300.0


def send_backlog(clients: LiveClients) -> list[Future[Any]]:
    """Send commits of many groups; returns the answers, which are noted in the ledger, or noticed as errors."""
    client, answers = clients.client(ANSWER_LIMIT_MS), list[Future[Any]]()

    def on_answer(group: str, offset: int, answered: Future[Any]) -> None:
        if error := clients.ledger.outcome((group, 0), offset, answered):
            clients.recording.notice("backlog", "error", error)

    for number in range(REQUESTS):
        offset, index = divmod(number, GROUPS)
        group = f"drill-backlog-{index}"
        answers.append(commit(client, group, {0: offset}))
        answers[-1].add_done_callback(partial(on_answer, group, offset))
    return answers


def play(stage: Stage) -> None:
    """Stop the job, let requests pile up, start the job, and wait until they are answered."""
    coordinator = stage.coordinator
    stage.fault("SIGTERM to the job")
    coordinator.job.terminate()
    stage.step(f"{REQUESTS:,} commits of {GROUPS} groups are sent")
    backlog = send_backlog(stage.clients)
    stage.watch_for(AWAY_SECONDS, "the job is away")
    stage.repair("the job is started")
    coordinator.start_job()
    began = stage.recording.now()
    stage.await_answers()
    await_until(
        lambda: all(answer.done() for answer in backlog),
        lambda: f"answers to {sum(not answer.done() for answer in backlog):,} requests of the backlog",
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
