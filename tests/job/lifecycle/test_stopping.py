"""The end of a query whose batch takes longer than a stop waits."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.embedded.jars import resolve_jars
from streaming.job.lifecycle.stopping import has_ended
from streaming.job.options import load_options
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.batch_end import stop_after_batch
from tests.support.coordinator_process import SHORT_LIVED_JVM
from tests.support.waiting import LIMIT_SECONDS, wait_until

pytestmark = pytest.mark.jvm


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    given = {"bootstrap_servers": "kafka:9092", "checkpoint": str(tmp_path / "unused"), "master": "local[1]"}
    options = load_options({**given, "driver_memory": "512m", **SHORT_LIVED_JVM}, {})
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


def test_a_query_has_ended_only_with_its_batch_although_spark_says_before_that_it_is_not_active(
    spark: SparkSession, tmp_path: Path
) -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def run(rows: DataFrame, _batch: int) -> None:
        # A job of Spark's, by which the stop sees that a batch runs.
        rows.count()
        is_running.set()
        may_end.wait(LIMIT_SECONDS)

    source = spark.readStream.format("rate").load()
    query = source.writeStream.foreachBatch(run).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert is_running.wait(LIMIT_SECONDS)
        assert not has_ended(query)
        stop_after_batch(query, 1)
        assert not query.isActive
        assert not has_ended(query)
        may_end.set()
        wait_until(lambda: has_ended(query), "the end of the query")
    finally:
        may_end.set()
        query.stop()
