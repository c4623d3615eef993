"""The job on a standalone cluster of two workers: what it needs travels with it. `make cluster` runs longer tests."""

import json
import os
import re
import signal
import urllib.request
from collections import defaultdict
from pathlib import Path

import pytest

from streaming.job.executors.settings import PACKAGES_FOLDER
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, VARIABLE
from tests.cluster.standalone import StandaloneCluster
from tests.support.coordinator_process import READY_LIMIT_SECONDS, CoordinatorProcess, commit_offsets, committed_offsets
from tests.support.processes import descendants, mapped_files, names
from tests.support.waiting import LIMIT_SECONDS, wait_until

DAEMON = b"streaming.job.spark_internals.python_worker.worker_daemon"

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide a folder from the workers")


def test_each_executor_has_one_of_the_states(
    coordinator: CoordinatorProcess, options: dict[str, object], events: Path, group: str
) -> None:
    """Spark leaves a state where the first batch has put it. Each state is a task of a batch."""
    commit_offsets(coordinator, group, 5)
    states = options["state-partitions"]
    batches = [executors for executors in executors_of_stages(events) if len(executors) == states]
    assert batches
    assert {len(set(executors)) for executors in batches} == {states}


def test_executors_that_have_only_a_python_run_the_job_s_own_workers(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    commit_offsets(coordinator, group, 5)
    daemons = [pid for executor in cluster.executors() for pid in descendants(executor) if names(pid, DAEMON)]
    assert daemons
    assert f"{VARIABLE}={ARROW}" in Path(f"/proc/{daemons[0]}/environ").read_text().split("\0")
    loaded = {path for path in mapped_files(daemons[0]) if "libarrow" in path}
    assert loaded
    own = [path for path in loaded if f"{PACKAGES_FOLDER}/pyarrow/" not in path]
    assert own == [], "not those of the driver's environment"


def test_a_metric_says_which_settings_have_not_reached_the_executors(coordinator: CoordinatorProcess) -> None:
    """The options of Java have not, because the test's own take their place."""
    (port,) = re.findall(r"serving metrics at port (\d+)", "\n".join(coordinator.output))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_SECONDS) as page:
        found = re.findall(r'group_coordinator_executors_lacking{setting="(.+)"} (\S+)', page.read().decode())
    assert dict(found) == {"python-worker": "0.0", "java-options": "2.0"}


@NEEDS_ROOT
def test_a_checkpoint_that_the_executors_do_not_share_is_refused(
    coordinator: CoordinatorProcess, options: dict[str, object], unshared: Path, tmp_path: Path
) -> None:
    own = {**options, "checkpoint": str(unshared / "checkpoint")}
    with CoordinatorProcess(coordinator.bootstrap_servers, tmp_path, own) as job:
        job.launch()
        assert job.wait(READY_LIMIT_SECONDS) == 1
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
    assert committed_offsets(coordinator, group) == [4]
    wait_until(lambda: len({*cluster.executors()} - {before[0]}) == 2, "another executor in its place")


def test_an_executor_that_joins_starts_python_before_a_batch_needs_it(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    commit_offsets(coordinator, group, 5)
    before = {*cluster.executors()}
    os.kill(min(before), signal.SIGKILL)

    def daemons_of_new_ones() -> list[int]:
        joined = {*cluster.executors()} - before
        return [pid for executor in joined for pid in descendants(executor) if names(pid, DAEMON)]

    # Nothing is sent, so no batch runs.
    wait_until(lambda: daemons_of_new_ones() != [], "Python at the executor that has joined")


def executors_of_stages(events: Path) -> list[list[str]]:
    """The executors of the tasks of each last stage of a job, from Spark's record of the first application's events."""
    record = min(events.iterdir())
    by_stage: defaultdict[int, list[str]] = defaultdict(list)
    # Spark may be writing the last line.
    for line in record.read_text().split("\n")[:-1]:
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and event["Task Type"] == "ResultTask":
            by_stage[event["Stage ID"]].append(event["Task Info"]["Executor ID"])
    return list(by_stage.values())
