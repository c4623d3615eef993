"""Two jobs that both take themselves for the active one: the older cannot overwrite what its successor has written.

The older one reaches the store through a proxy. It is paused with SIGSTOP when one of its requests is there. It and
that request go on when its successor has completed further batches.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.object_store.proxy import HELD_LIMIT_SECONDS, S3Proxy
from tests.object_store.server import S3Server
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets, committed_offsets, reports_ready
from tests.support.processes import paused, process_tree

STORED, REFUSED = 200, 412

FILES = {
    "plan": (r"PUT /fence/plan/offsets/\d+", REFUSED),
    "state": (r"PUT /fence/state/state/0/0/\d+\.delta", STORED),
    "end": (r"PUT /fence/end/commits/\d+", REFUSED),
}
"""The files of a batch, and how the store answers the older job. Once a plan is stored, both have the same state."""


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    s3.bucket("fence")
    with S3Proxy(s3.address) as started:
        yield started


@pytest.mark.parametrize("file", FILES)
def test_a_job_that_was_paused_at_a_file_of_a_batch_overwrites_nothing_of_its_successor(
    broker: EmbeddedBroker, s3: S3Server, proxy: S3Proxy, tmp_path: Path, file: str
) -> None:
    shared = {"checkpoint": f"s3a://fence/{file}", "standby": True, **s3.options}
    through_proxy = {"spark.hadoop.fs.s3a.endpoint": f"http://{proxy.address}"}
    older = CoordinatorProcess(broker.bootstrap_servers, tmp_path / "older", {**shared, **through_proxy})
    same_topics = {"topic-prefix": older.topics.prefix}
    newer = CoordinatorProcess(broker.bootstrap_servers, tmp_path / "newer", {**shared, **same_topics})
    with ExitStack() as stack:
        for job in (older, newer):
            stack.callback(job.kill)
        older.start()
        commit_offsets(older, "before", 1)
        newer.launch()
        newer.await_line("that it stands by", lambda line: "standby: the job on" in line)

        pattern, answer = FILES[file]
        held = proxy.hold(pattern)
        pool = stack.enter_context(ThreadPoolExecutor())
        begun = pool.submit(commit_offsets, older, "begun", 2)
        assert held.arrived.wait(HELD_LIMIT_SECONDS)
        with paused(process_tree(older.pid)):
            # The plan of the older job does not have this one.
            later = pool.submit(commit_offsets, older, "later", 3)
            newer.await_line("that it is ready", reports_ready)
            begun.result()
            later.result()
            commit_offsets(newer, "after", 4)
        held.release()
        assert older.wait() == 1
        assert "another job" in older.output[-1], older.tail()
        assert held.status == answer

        commit_offsets(newer, "last", 5)
        newer.kill()
        newer.start()
        assert [committed_offsets(newer, group) for group in ("before", "begun", "later", "after", "last")] == [
            [1], [2], [3], [4], [5]
        ]  # fmt: skip
