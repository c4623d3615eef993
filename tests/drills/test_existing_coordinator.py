"""A drill on a coordinator that runs already happens only if the user has named the process that it breaks."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streaming.contract.errors import BadOptions, CannotRun
from streaming.drills.existing_coordinator import confirmed
from streaming.job.election.announcements import ActiveJob


def job(process_id: int, host: str | None = None) -> ActiveJob:
    """An announcement of a job on this host."""
    return ActiveJob(
        epoch=3, host=host or socket.gethostname(), process_id=process_id, started_at=1_700_000_000_000, version="0.1.0"
    )


@contextmanager
def process(word: str) -> Iterator[int]:
    """A process that waits, with a word on its command line."""
    started = subprocess.Popen([sys.executable, "-c", "input()", word], stdin=subprocess.PIPE)
    try:
        yield started.pid
    finally:
        started.kill()
        started.wait()


@pytest.fixture
def running() -> Iterator[int]:
    """A process whose command line is like a job's."""
    with process("run") as process_id:
        yield process_id


def test_the_named_process_of_the_active_job_is_accepted(running: int) -> None:
    confirmed("kill", job(running), running)


def test_without_a_process_id_the_message_says_what_would_be_done(running: int) -> None:
    with pytest.raises(
        BadOptions, match=rf"sends SIGTERM to the job on .* active since 2023-11-14.* add --pid {running}"
    ):
        confirmed("standby", job(running), None)


@pytest.mark.parametrize("drill", ["all", "broker", "restore", "rebuild", "downtime", "damage", "clock"])
def test_drills_that_break_more_than_a_job_are_refused(drill: str, running: int) -> None:
    with pytest.raises(BadOptions, match="a coordinator of its own only"):
        confirmed(drill, job(running), running)


def test_another_process_id_is_refused(running: int) -> None:
    with pytest.raises(BadOptions, match=f"--pid {os.getpid()} is not the active job"):
        confirmed("kill", job(running), os.getpid())


def test_a_job_on_another_machine_is_refused(running: int) -> None:
    with pytest.raises(CannotRun, match="run the drill there"):
        confirmed("kill", job(running, "another-host"), running)


def test_a_process_that_is_no_job_is_refused() -> None:
    with process("gateway") as other, pytest.raises(CannotRun, match="may run in a container"):
        confirmed("kill", job(other), other)
