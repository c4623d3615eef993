"""Several jobs for the same topics and checkpoint: one is active, another takes over without losing anything."""

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
from tests.support.processes import paused, process_tree
from tests.support.request_events import commit, dumped, envelope
from tests.support.topics import unique

Jobs = tuple[CoordinatorProcess, CoordinatorProcess]


@pytest.fixture(scope="module")
def pair(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Two jobs with the same topics and checkpoint, not started."""
    folder = tmp_path_factory.mktemp("standby")
    first = CoordinatorProcess(broker.bootstrap_servers, folder / "first", {"standby": True})
    same = {"checkpoint": str(first.checkpoint), "topic-prefix": first.topics.prefix, "standby": True}
    second = CoordinatorProcess(broker.bootstrap_servers, folder / "second", same)
    with ExitStack() as stack:
        for job in (first, second):
            stack.callback(job.kill)
        yield first, second


@pytest.fixture
def jobs(pair: Jobs) -> Jobs:
    """The active job, which an earlier test may have left, and the other one, which does not run and may stand by."""
    active, other = reversed(pair) if pair[1].is_running else pair
    assert not other.is_running
    other.options["standby"] = True
    if not active.is_running:
        active.start()
    return active, other


@pytest.fixture
def group() -> str:
    return unique("group")


def answer(job: CoordinatorProcess, group_id: str, request: dict[str, Any]) -> dict[str, Any]:
    append(job.bootstrap_servers, job.topics.requests, (group_id.encode(), dumped(request)))
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
    folder = Path(str(job.options["checkpoint"]), STARTS_FOLDER)
    return [path.name for path in folder.iterdir() if path.name.isdigit()]


def commit_offset(job: CoordinatorProcess, group_id: str, offset: int) -> None:
    answer(job, group_id, commit(group_id, offset))


def committed_offset(job: CoordinatorProcess, group_id: str) -> int:
    body = {"groupId": group_id, "topics": [{"name": "payments", "partitionIndexes": [0]}]}
    (topic,) = answer(job, group_id, envelope("OffsetFetch", 5, body))["body"]["topics"]
    return int(topic["partitions"][0]["committedOffset"])


def test_a_second_job_that_may_not_stand_by_ends_and_names_the_active_one(jobs: Jobs, group: str) -> None:
    active, other = jobs
    other.options["standby"] = False
    other.launch()
    assert other.wait() != 0
    (line,) = (line for line in other.output if "has been active since" in line)
    assert f"the job on {socket.gethostname()} with process id {active.pid}" in line
    assert "--standby" in line
    commit_offset(active, group, 5)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_standby_takes_over_what_was_acknowledged(jobs: Jobs, group: str, end: str) -> None:
    active, standby = jobs
    before = starts(active)
    stand_by(standby)
    commit_offset(active, group, 5)
    getattr(active, end)()
    assert committed_offset(standby, group) == 5
    assert len(starts(active)) == len(before) + 1, "one start of each job"
    assert not any("starting the query again" in line for line in standby.output), standby.tail()


def test_a_job_that_was_paused_longer_than_its_lease_ends_and_does_no_harm(jobs: Jobs, group: str) -> None:
    active, standby = jobs
    stand_by(standby)
    commit_offset(active, group, 5)
    with paused(process_tree(active.pid)):
        commit_offset(standby, group, 6)
    assert active.wait() != 0
    assert any("another job has become the active one" in line for line in active.output), active.tail()
    commit_offset(standby, group, 7)
    assert committed_offset(standby, group) == 7
