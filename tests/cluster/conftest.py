"""The cluster that the tests of this folder share, and a job on it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.cluster.standalone import StandaloneCluster, elsewhere
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import unique


@pytest.fixture(scope="package")
def unshared(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A folder that the workers do not share; None without the rights to make one."""
    return tmp_path_factory.mktemp("unshared") if os.geteuid() == 0 else None


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory, unshared: Path | None) -> Iterator[StandaloneCluster]:
    within = [] if unshared is None else elsewhere(unshared)
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), 2, within=lambda _: within) as running:
        yield running


@pytest.fixture(scope="package")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which Spark records its events."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="package")
def options(cluster: StandaloneCluster, events: Path) -> dict[str, object]:
    return {
        "master": cluster.master_url,
        "state-partitions": 2,
        "spark.executor.memory": "512m",
        # Without a spare one, so that there is room for those of another job.
        "spark.cores.max": 2,
        "spark.driver.host": "127.0.0.1",
        "metrics-port": 0,
        "spark.eventLog.enabled": True,
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": False,
        "spark.eventLog.compress": False,
        # In place of the job's own.
        "spark.executor.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
    }


@pytest.fixture(scope="package")
def coordinator(
    options: dict[str, object], broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("job"), options) as job:
        job.start()
        yield job


@pytest.fixture
def group() -> str:
    return unique("billing")
