"""Several jobs for the same topics and checkpoint: one is active, another takes over without losing anything."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.processes import descendants
from tests.support.request_events import commit, dumped, envelope

GROUP = "group"


@pytest.fixture
def jobs(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[tuple[CoordinatorProcess, CoordinatorProcess]]:
    """Two jobs with the same topics and checkpoint, not started; the second may stand by."""
    active = CoordinatorProcess(broker.bootstrap_servers, tmp_path / "active")
    same = {"checkpoint": str(active.checkpoint), "topic-prefix": active.topics.prefix, "standby": True}
    other = CoordinatorProcess(broker.bootstrap_servers, tmp_path / "other", same)
    with ExitStack() as stack:
        for job in (active, other):
            stack.callback(job.kill)
        yield active, other


def answer(job: CoordinatorProcess, request: dict[str, Any]) -> dict[str, Any]:
    append(job.bootstrap_servers, job.topics.requests, (GROUP.encode(), dumped(request)))
    with reading(job.bootstrap_servers, job.topics.responses) as responses:
        key = str(request["correlationId"]).encode()
        value: dict[str, Any] = responses.first(lambda record: record.key == key, "the answer").value
    assert value["errorCode"] == 0
    return value


def stand_by(job: CoordinatorProcess) -> None:
    job.launch()
    job.await_line("that it stands by", lambda line: "standby: the job on" in line)


def starts(job: CoordinatorProcess) -> list[str]:
    """The starts that the checkpoint has recorded."""
    return [path.name for path in (job.checkpoint / STARTS_FOLDER).iterdir() if path.name.isdigit()]


def committed_offset(job: CoordinatorProcess) -> int:
    body = {"groupId": GROUP, "topics": [{"name": "payments", "partitionIndexes": [0]}]}
    (topic,) = answer(job, envelope("OffsetFetch", 5, body))["body"]["topics"]
    return int(topic["partitions"][0]["committedOffset"])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_standby_takes_over_what_was_acknowledged(
    jobs: tuple[CoordinatorProcess, CoordinatorProcess], end: str
) -> None:
    active, standby = jobs
    active.start()
    stand_by(standby)
    answer(active, commit(GROUP, 5))
    getattr(active, end)()
    assert committed_offset(standby) == 5
    assert len(starts(active)) == 2, "one start of each job"
    assert not any("starting the query again" in line for line in standby.output), standby.tail()


def test_a_job_that_was_paused_longer_than_its_lease_ends_and_does_no_harm(
    jobs: tuple[CoordinatorProcess, CoordinatorProcess],
) -> None:
    active, standby = jobs
    active.start()
    stand_by(standby)
    answer(active, commit(GROUP, 5))
    paused = [active.pid, *descendants(active.pid)]
    for pid in paused:
        os.kill(pid, signal.SIGSTOP)
    try:
        answer(standby, commit(GROUP, 6))
    finally:
        for pid in paused:
            os.kill(pid, signal.SIGCONT)
    assert active.wait() != 0
    assert any("another job has become the active one" in line for line in active.output), active.tail()
    answer(standby, commit(GROUP, 7))
    assert committed_offset(standby) == 7


def test_a_second_job_that_may_not_stand_by_ends_and_names_the_active_one(
    jobs: tuple[CoordinatorProcess, CoordinatorProcess],
) -> None:
    active, other = jobs
    active.start()
    other.options["standby"] = False
    other.launch()
    assert other.wait() != 0
    (line,) = (line for line in other.output if "has been active since" in line)
    assert f"the job on {socket.gethostname()} with process id {active.pid}" in line
    assert "--standby" in line
    answer(active, commit(GROUP, 5))
