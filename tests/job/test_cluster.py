"""Executors in their own processes: the settings and files of the driver reach them."""

from pathlib import Path

import pytest

from coordinator_logic.messages import GroupToFetch
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, VARIABLE
from tests.support.coordinator_process import CoordinatorProcess, linked_spark_home
from tests.support.processes import descendants, names


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster's workers write to the test's own folder."""
    home = linked_spark_home(tmp_path)
    monkeypatch.setenv("SPARK_HOME", str(home))
    # The variable would win over the option.
    monkeypatch.delenv(VARIABLE, raising=False)
    return home


@pytest.mark.usefixtures("spark_home")
def test_the_workers_run_on_the_executors_of_a_cluster(broker: EmbeddedBroker, tmp_path: Path) -> None:
    options = {"master": "local-cluster[1,1,768]", "spark.executor.memory": "768m", "python-worker": ARROW}
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path, options)
    coordinator.start()
    try:
        prefix = coordinator.topics.prefix
        with CoordinatorClient(broker.bootstrap_servers, topic_prefix=prefix, client_id="test") as client:
            answer = client.offset_fetch([GroupToFetch("billing")])
        assert [(group.group_id, group.error_code) for group in answer.groups] == [("billing", 0)]
        executors = [pid for pid in descendants(coordinator.pid) if names(pid, b"CoarseGrainedExecutorBackend")]
        workers = [
            pid
            for executor in executors
            for pid in descendants(executor)
            if names(pid, b"streaming.job.spark_internals.python_worker.worker_daemon")
        ]
        assert workers
        assert f"{VARIABLE}={ARROW}" in Path(f"/proc/{workers[0]}/environ").read_text().split("\0")
        assert coordinator.stop() == 0
    finally:
        coordinator.kill()
