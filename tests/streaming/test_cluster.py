"""Executors in processes of their own: what the driver's process has done for itself must have reached them too."""

from pathlib import Path

import pyspark
import pytest

from coordinator_logic.messages import GroupToFetch
from streaming.broker import EmbeddedBroker
from streaming.client import CoordinatorClient
from streaming.python_worker import ARROW, VARIABLE
from tests.streaming.coordinator_process import CoordinatorProcess, descendants


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pyspark's folder by links, so that the files of the cluster's workers end up in the test's own."""
    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    monkeypatch.setenv("SPARK_HOME", str(home))
    # It would win over the option.
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
        executors = [pid for pid in descendants(coordinator.pid) if "CoarseGrainedExecutorBackend" in command(pid)]
        workers = [pid for executor in executors for pid in descendants(executor) if "streaming.worker" in command(pid)]
        assert workers
        assert f"{VARIABLE}={ARROW}" in Path(f"/proc/{workers[0]}/environ").read_text().split("\0")
        assert coordinator.stop() == 0
    finally:
        coordinator.kill()


def command(pid: int) -> str:
    """The command line of a process; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
