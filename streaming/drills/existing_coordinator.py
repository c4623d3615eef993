"""Drills on a coordinator that runs already: its active job is killed or stopped, if it runs on this machine."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from streaming.client import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.errors import BadOptions, CannotRun
from streaming.contract.topics import TopicNames
from streaming.drills.clients.live_clients import CLIENT_ID
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import DrillFailed, await_until
from streaming.job.election.announcements import ActiveJob, AnnouncementWatch

ANSWER_LIMIT_SECONDS = 10.0
PS_LIMIT_SECONDS = 10.0
SUCCESSOR_LIMIT_SECONDS = 60.0

NO_SIGNAL = 0
"""With this, the kernel checks the right to send a signal, and sends none."""

SIGNALS = {"kill": signal.SIGKILL, "standby": signal.SIGTERM}
"""The drills that make sense here, with what they send to the active job."""

OBJECTIVES: Mapping[str, RecoveryObjectives] = {
    "kill": RecoveryObjectives(first_answer_seconds=120),
    "standby": RecoveryObjectives(first_answer_seconds=10, longest_gap_seconds=5, slowdown=4, errors=False),
}

AFTERWARDS = {
    "kill": "its supervisor has to start it again, or another job stands by",
    "standby": "another job must stand by, and the supervisor must accept that this one ends",
}


def active_job(bootstrap_servers: str, prefix: str, config: LibrdkafkaConfig) -> ActiveJob:
    """The job that announces itself as the active one. Raises CannotRun."""
    topic = TopicNames(prefix).coordinators
    try:
        with AnnouncementWatch(bootstrap_servers, CLIENT_ID, config, topic, ANSWER_LIMIT_SECONDS) as watch:
            watch.look()
            newest = watch.newest
    except CoordinatorError as failure:
        raise CannotRun(f"which job is active is not known: {failure}") from failure
    if newest is None or newest.is_released:
        raise CannotRun(f"{topic} names no active job")
    return newest


def described(job: ActiveJob) -> str:
    """The job, for people."""
    since = datetime.fromtimestamp(job.started_at / 1000, UTC).isoformat(timespec="seconds")
    return f"the job on {job.host} with process id {job.process_id}, active since {since}"


def confirmed(drill: str, job: ActiveJob, process_id: int | None) -> None:
    """Check that the user has named the active job's process, and that it runs here.

    Raises:
        BadOptions: the process id is missing or another one; the message says what the drill would do.
        CannotRun: the job runs on another machine.
    """
    if drill not in SIGNALS:
        raise BadOptions(
            f"drill {drill} breaks more than a job: it works on a coordinator of its own only, without "
            "--bootstrap-servers"
        )
    if job.host != socket.gethostname():
        raise CannotRun(f"{described(job)}, runs on another machine: run the drill there")
    name = SIGNALS[drill].name
    if process_id is None:
        raise BadOptions(
            f"drill {drill} sends {name} to {described(job)}; {AFTERWARDS[drill]}. To do that, add "
            f"--pid {job.process_id}"
        )
    if process_id != job.process_id:
        raise BadOptions(f"--pid {process_id} is not the active job: that is {described(job)}")
    if "run" not in _command_line(process_id).split():
        raise CannotRun(f"process {process_id} is not a `group-coordinator run`: it may run in a container")
    try:
        os.kill(process_id, NO_SIGNAL)
    except PermissionError as refused:
        raise CannotRun(f"process {process_id} belongs to another user: run the drill as that user") from refused


def scenario(drill: str, job: ActiveJob, look: Callable[[], ActiveJob]) -> Scenario:
    """The scenario of a drill that was confirmed. ``look`` returns the job that is active then."""
    number = SIGNALS[drill]

    def play(stage: Stage) -> None:
        now_active = look()
        if now_active.process_id != job.process_id:
            raise DrillFailed(f"nothing was done: the active job is another one by now, {described(now_active)}")
        stage.fault(f"{number.name} to process {job.process_id}")
        os.kill(job.process_id, number)
        stage.await_answers()
        stage.step(f"active now: {described(_successor(job, look))}")

    return Scenario(
        drill=drill,
        title=f"The active job gets {number.name}",
        what=f"{number.name} to {described(job)}.",
        objectives=OBJECTIVES[drill],
        play=play,
    )


def _successor(job: ActiveJob, look: Callable[[], ActiveJob]) -> ActiveJob:
    """The job that is active after this one. Raises DrillFailed if there is none in time."""
    found: list[ActiveJob] = []

    def has_changed() -> bool:
        # The first answer may still be of the job that got the signal; and after its end, none is active for a moment.
        with suppress(CannotRun):
            found.append(look())
        return bool(found) and found[-1].started_at != job.started_at

    await_until(has_changed, lambda: "another active job", SUCCESSOR_LIMIT_SECONDS)
    return found[-1]


def _command_line(process_id: int) -> str:
    command = ["ps", "-p", str(process_id), "-o", "command="]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PS_LIMIT_SECONDS, check=False).stdout
    except OSError as failure:
        raise CannotRun(f"ps cannot show process {process_id}: {failure}") from failure
