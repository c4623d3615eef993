"""A job whose checkpoint is in an object store, and its standby on what could be another host: no folder is shared."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.object_store.server import S3Server
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets, committed_offsets
from tests.support.waiting import wait_until

Jobs = tuple[CoordinatorProcess, CoordinatorProcess]


@pytest.fixture(scope="module")
def jobs(broker: EmbeddedBroker, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Two jobs with the same topics and checkpoint, which may stand by: an active one, and one that was not started."""
    s3.bucket("checkpoints")
    folder = tmp_path_factory.mktemp("jobs")
    shared = {"checkpoint": "s3a://checkpoints/coordinator", "standby": True, **s3.options}
    first = CoordinatorProcess(broker.bootstrap_servers, folder / "first", shared)
    same_topics = {"topic-prefix": first.topics.prefix}
    second = CoordinatorProcess(broker.bootstrap_servers, folder / "second", {**shared, **same_topics})
    with ExitStack() as stack:
        for job in (first, second):
            stack.callback(job.kill)
        first.start()
        yield first, second


def test_each_file_is_written_with_one_request_under_its_own_name(jobs: Jobs, s3: S3Server) -> None:
    active, _ = jobs
    before = len(s3.output)
    commit_offsets(active, "invoices", 5, 6)
    wait_until(lambda: "PUT /checkpoints/coordinator/commits/" in requests(s3, before), "the end of the batch")
    written = [line for line in requests(s3, before).splitlines() if line.startswith("PUT ")]
    assert len(written) == len(set(written))
    assert ".tmp" not in "".join(written)


def test_what_was_acknowledged_outlives_each_job_that_is_killed(jobs: Jobs) -> None:
    active, standby = jobs
    commit_offsets(active, "billing", 5, 6)
    standby.launch()
    standby.await_line("that it stands by", lambda line: "standby: the job on" in line)
    active.kill()
    assert committed_offsets(standby, "billing") == [5, 6]

    commit_offsets(standby, "billing", 7, 8)
    standby.kill()
    active.start()
    assert committed_offsets(active, "billing") == [7, 8]
    assert active.stop() == 0


def requests(s3: S3Server, begin: int) -> str:
    """The requests that the server has got since this line of its log, one a line: the method and the path."""
    return "\n".join(f"{each.method} {each.path}" for each in s3.requests(begin))
