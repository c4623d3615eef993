"""The job on a standalone cluster of two workers: what it needs travels with it, and no executor is missed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.executors.settings import PACKAGES_FOLDER
from streaming.job.spark_internals.worker_choice import ARROW, VARIABLE
from tests.cluster.standalone import StandaloneCluster
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.processes import descendants, mapped_files, names
from tests.support.waiting import wait_until

EXECUTOR, DAEMON = b"CoarseGrainedExecutorBackend", b"streaming.job.spark_internals.worker_daemon"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def coordinator(
    cluster: StandaloneCluster, broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CoordinatorProcess]:
    options = {
        "master": cluster.master_url,
        "state-partitions": 2,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("job"), options) as job:
        job.start()
        yield job


def test_executors_that_have_only_a_python_run_the_job_s_own_workers(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess
) -> None:
    commit_offsets(coordinator, "billing", 5)
    daemons = [pid for executor in executors(cluster) for pid in descendants(executor) if names(pid, DAEMON)]
    assert daemons
    variables = Path(f"/proc/{daemons[0]}/environ").read_text().split("\0")
    assert f"{VARIABLE}={ARROW}" in variables
    loaded = {path for path in mapped_files(daemons[0]) if "libarrow" in path}
    assert loaded
    assert all(f"{PACKAGES_FOLDER}/pyarrow/" in path for path in loaded), "not those of the driver's environment"


def test_commits_go_on_when_an_executor_is_killed(cluster: StandaloneCluster, coordinator: CoordinatorProcess) -> None:
    commit_offsets(coordinator, "billing", 6)
    before = executors(cluster)
    os.kill(before[0], signal.SIGKILL)
    for offset in range(7, 12):
        commit_offsets(coordinator, "billing", offset)
    wait_until(lambda: len({*executors(cluster)} - {before[0]}) == 2, "another executor in its place")


def executors(cluster: StandaloneCluster) -> list[int]:
    """The process ids of the executors."""
    return [pid for worker in cluster.workers for pid in descendants(worker.pid) if names(pid, EXECUTOR)]
