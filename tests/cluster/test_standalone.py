"""The job on a standalone cluster of two workers: what it needs travels with it, and no kill loses anything."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_logic.messages import GroupToFetch
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.executors.settings import PACKAGES_FOLDER
from streaming.job.spark_internals.worker_choice import ARROW, VARIABLE
from tests.cluster.standalone import StandaloneCluster
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.processes import descendants, mapped_files, names
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

DAEMON = b"streaming.job.spark_internals.worker_daemon"

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide a folder from the workers")


@pytest.fixture(scope="module")
def unshared(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A folder that the workers do not share; None without the rights to make one."""
    return tmp_path_factory.mktemp("unshared") if os.geteuid() == 0 else None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, unshared: Path | None) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), 2, unshared) as running:
        yield running


@pytest.fixture(scope="module")
def options(cluster: StandaloneCluster) -> dict[str, object]:
    return {
        "master": cluster.master_url,
        "state-partitions": 2,
        "spark.executor.memory": "512m",
        "spark.executor.cores": 1,
        "spark.driver.host": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def coordinator(
    options: dict[str, object], broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("job"), options) as job:
        job.start()
        yield job


@pytest.fixture
def group() -> str:
    return unique("billing")


def committed_offset(coordinator: CoordinatorProcess, group: str) -> int:
    """What the group has committed for the partition of :func:`commit_offsets`."""
    prefix = coordinator.topics.prefix
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=prefix) as client:
        ((topic,),) = (found.topics for found in client.offset_fetch([GroupToFetch(group)]).groups)
    return topic.partitions[0].committed_offset


def test_executors_that_have_only_a_python_run_the_job_s_own_workers(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    commit_offsets(coordinator, group, 5)
    daemons = [pid for executor in cluster.executors() for pid in descendants(executor) if names(pid, DAEMON)]
    assert daemons
    assert f"{VARIABLE}={ARROW}" in Path(f"/proc/{daemons[0]}/environ").read_text().split("\0")
    loaded = {path for path in mapped_files(daemons[0]) if "libarrow" in path}
    assert loaded
    assert all(f"{PACKAGES_FOLDER}/pyarrow/" in path for path in loaded), "not those of the driver's environment"


def test_doctor_tells_what_the_executors_have_and_that_they_reach_the_checkpoint(
    coordinator: CoordinatorProcess, options: dict[str, object]
) -> None:
    settings = [f"--set={key}={value}" for key, value in options.items() if key.startswith("spark.")]
    line = ["doctor", "--json", "--master", str(options["master"]), "--checkpoint", str(coordinator.checkpoint)]
    command = [sys.executable, "-m", "streaming.cli", *line, *settings]
    examined = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    findings = {each["check"]: each for each in json.loads(examined.stdout)}
    assert findings["executors"]["status"] == "ok", findings
    assert "1 executor on " in findings["executors"]["detail"]
    assert ": Python 3.11." in findings["executors"]["detail"]
    assert "; Java 17" in findings["executors"]["detail"]
    assert findings["executors' clocks"]["status"] == "ok", findings
    assert findings["executors' checkpoint"] == {
        "check": "executors' checkpoint",
        "status": "ok",
        "detail": f"an executor has read {coordinator.checkpoint}",
        "advice": "",
    }


@NEEDS_ROOT
def test_a_checkpoint_that_the_executors_do_not_share_is_refused(
    coordinator: CoordinatorProcess, options: dict[str, object], unshared: Path, tmp_path: Path
) -> None:
    own = {**options, "checkpoint": str(unshared / "checkpoint")}
    with CoordinatorProcess(coordinator.bootstrap_servers, tmp_path, own) as job:
        job.launch()
        assert job.wait() == 1
    (line,) = (line for line in job.output if "does not see" in line)
    assert f"does not see what this host writes to checkpoint {unshared}/checkpoint: use s3a://" in line
    assert not any("Traceback" in line or "\tat " in line for line in job.output), job.tail()


def test_commits_go_on_when_an_executor_is_killed(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    before = cluster.executors()
    os.kill(before[0], signal.SIGKILL)
    for offset in range(5):
        commit_offsets(coordinator, group, offset)
    assert committed_offset(coordinator, group) == 4
    wait_until(lambda: len({*cluster.executors()} - {before[0]}) == 2, "another executor in its place")


def test_commits_go_on_when_a_worker_is_killed_and_on_one_that_joins_later(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    first, second = cluster.workers
    commit_offsets(coordinator, group, 1)
    first.kill()
    commit_offsets(coordinator, group, 2)
    cluster.start_workers(first)
    assert committed_offset(coordinator, group) == 2
    second.kill()
    commit_offsets(coordinator, group, 3)
    assert committed_offset(coordinator, group) == 3
    assert cluster.executors(first)
    cluster.start_workers(second)


def test_a_standby_with_executors_of_its_own_takes_over_from_a_driver_that_is_killed(
    coordinator: CoordinatorProcess, options: dict[str, object], group: str, tmp_path: Path
) -> None:
    same = {"checkpoint": str(coordinator.checkpoint), "topic-prefix": coordinator.topics.prefix, "standby": True}
    with CoordinatorProcess(coordinator.bootstrap_servers, tmp_path, options | same) as standby:
        standby.launch()
        standby.await_line("that it stands by", lambda line: "standby: the job on" in line)
        commit_offsets(coordinator, group, 7)
        coordinator.kill()
        assert committed_offset(standby, group) == 7
        commit_offsets(standby, group, 8)
        assert committed_offset(standby, group) == 8
