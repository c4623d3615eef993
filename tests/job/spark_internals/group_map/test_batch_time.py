"""The time of a batch reaches its tasks, and the state that they have is the map of groups."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from streaming.embedded.jars import resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.group_map.compilation import group_map_jars, make_group_map_jar
from streaming.job.spark_internals.java_objects import java_virtual_machine
from tests.support.coordinator_process import SHORT_LIVED_JVM

pytestmark = pytest.mark.jvm

PROPERTY = "group-coordinator.batch-time"
MAP = "org.apache.spark.sql.execution.streaming.state.NoPrefixHDFSBackedStateStoreMap"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    make_group_map_jar()
    java = SHORT_LIVED_JVM["spark.driver.defaultJavaOptions"]
    chosen = {"driver.memory": "512m", "driver.defaultJavaOptions": java, "sql.shuffle.partitions": "1"}
    checkpoint = str(tmp_path_factory.mktemp("batch-time"))
    # pyspark's worker runs functions that are not the coordinator's.
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=checkpoint, python_worker="stock", spark=chosen)
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


def property_and_time(_key: Any, _frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Tell what the task knows of its batch, and the batch's time; a state makes the next batch another version."""
    context = TaskContext.get()
    assert context is not None
    state.update((1,))
    known, time = context.getLocalProperty(PROPERTY), state.getCurrentProcessingTimeMs()
    yield pd.DataFrame({"known": [known], "time": [time], "batch": [context.getLocalProperty("streaming.sql.batchId")]})


def told(spark: SparkSession, folder: Path, timeout: str) -> list[dict[str, Any]]:
    """Run a query of three batches; what the tasks of each have told, by batch."""
    source, checkpoint, output = folder / "source", folder / "checkpoint", folder / "output"
    source.mkdir()
    for number in range(3):
        (source / f"{number}.json").write_text(json.dumps({"group": f"g{number}"}))
    stream = spark.readStream.schema("group string").option("maxFilesPerTrigger", 1).json(str(source))
    rows = stream.groupBy("group").applyInPandasWithState(
        property_and_time, "known string, time long, batch string", "count int", "append", timeout
    )
    writing = rows.writeStream.format("json").option("checkpointLocation", str(checkpoint)).outputMode("append")
    writing.trigger(availableNow=True).start(str(output)).awaitTermination()
    rows_of_all = [json.loads(line) for file in output.glob("*.json") for line in file.read_text().splitlines()]
    return sorted(rows_of_all, key=lambda row: int(row["batch"]))


def test_the_class_is_from_the_jar_of_the_project(spark: SparkSession) -> None:
    found = java_virtual_machine(spark).java.lang.Class.forName(MAP).getProtectionDomain().getCodeSource()
    (jar,) = group_map_jars()
    assert found.getLocation().getPath() == str(jar)


def test_the_tasks_of_each_batch_know_its_time(spark: SparkSession, tmp_path: Path) -> None:
    batches = told(spark, tmp_path, GroupStateTimeout.ProcessingTimeTimeout)
    assert [batch["batch"] for batch in batches] == ["0", "1", "2"]
    for batch in batches:
        _query, number, time = batch["known"].split(" ")
        assert (number, int(time)) == (batch["batch"], batch["time"])


def test_a_query_without_timeouts_tells_no_time(spark: SparkSession, tmp_path: Path) -> None:
    assert ["known" in batch for batch in told(spark, tmp_path, GroupStateTimeout.NoTimeout)] == [False] * 3
