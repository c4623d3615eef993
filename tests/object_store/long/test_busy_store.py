"""A store that refuses every request for a while with 503: the job waits, and nothing is lost."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streaming.embedded.broker import EmbeddedBroker
from tests.object_store.proxy import S3Proxy
from tests.object_store.server import S3Server
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets, committed_offsets
from tests.support.waiting import wait_until

REFUSING_SECONDS = float(os.environ.get("REFUSING_SECONDS", "10"))


def test_what_is_committed_while_the_store_refuses_is_answered_when_it_no_longer_does(
    broker: EmbeddedBroker, s3: S3Server, tmp_path: Path
) -> None:
    s3.bucket("refusing")
    with S3Proxy(s3.address) as proxy, ThreadPoolExecutor() as pool:
        through_proxy = {**s3.options, "spark.hadoop.fs.s3a.endpoint": f"http://{proxy.address}"}
        options = {"checkpoint": "s3a://refusing/coordinator", **through_proxy}
        with CoordinatorProcess(broker.bootstrap_servers, tmp_path, options) as job:
            job.start()
            commit_offsets(job, "before", 1)
            proxy.is_refusing = True
            waiting = pool.submit(commit_offsets, job, "meanwhile", 2)
            wait_until(lambda: proxy.refused, "a request that is refused")
            refused_at = time.monotonic()
            wait_until(lambda: time.monotonic() - refused_at > REFUSING_SECONDS, "the end of the refusals")
            proxy.is_refusing = False
            waiting.result()
            assert not [line for line in job.output if "starting the query again" in line or "\tat " in line]
            job.kill()
            job.start()
            assert [committed_offsets(job, group) for group in ("before", "meanwhile")] == [[1], [2]]
