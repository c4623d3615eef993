"""The job on YARN, with its checkpoint in HDFS."""

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.cluster.hadoop import Hadoop
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets, committed_offsets
from tests.support.topics import unique

JARS = Path(pyspark.__file__).parent / "jars"


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with Hadoop(tmp_path_factory.mktemp("hadoop")) as running:
        running.start()
        yield running


def test_a_job_on_yarn_keeps_its_commits_in_hdfs_when_its_driver_is_killed(
    hadoop: Hadoop, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    options = {
        "master": "yarn",
        "checkpoint": f"{hadoop.files}/checkpoint",
        # Else each start uploads Spark's own jars.
        "spark.yarn.jars": f"local:{JARS}/*",
        "spark.yarn.am.memory": "256m",
        "spark.executor.instances": 1,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    environment = {"HADOOP_CONF_DIR": str(hadoop.configuration)}
    group = unique("billing")
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path, options, environment=environment) as job:
        job.start()
        commit_offsets(job, group, 5)
        job.kill()
        job.start()
        assert committed_offsets(job, group) == [5]
        assert job.stop() == 0
