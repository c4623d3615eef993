"""Spark's trigger waits at a clock that goes on when it is told to."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.embedded.jars import resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.batch_end import stop_after_batch
from streaming.job.spark_internals.trigger_clock import STEP_MS, QueryHasEnded, TriggerClock
from tests.support.waiting import wait_until

pytestmark = pytest.mark.jvm

LOOKS = 5
STEP = {"processingTime": f"{STEP_MS} milliseconds"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    checkpoint = tmp_path_factory.mktemp("clock") / "unused"
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(checkpoint), driver_memory="512m")
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


@contextmanager
def running(spark: SparkSession, folder: Path) -> Iterator[StreamingQuery]:
    """A query that reads the text files of a folder, and keeps their lines in the table ``lines``."""
    lines = spark.readStream.text(str(folder)).writeStream.format("memory").queryName("lines")
    query = lines.trigger(**STEP).start()
    try:
        yield query
    finally:
        query.stop()


def read_lines(spark: SparkSession) -> list[str]:
    return sorted(row.value for row in spark.sql("select value from lines").collect())


def test_the_query_looks_once_each_time_that_it_is_told_to(spark: SparkSession, tmp_path: Path) -> None:
    with running(spark, tmp_path) as query:
        clock = TriggerClock(spark, query)
        # It may have looked before the clock stood still.
        clock.look()
        expected: list[str] = []
        for number in range(LOOKS):
            wait_until(lambda: query.status["message"] == "Waiting for next trigger", "the query to wait")
            (tmp_path / f"{number}.txt").write_text(f"line {number}\n")
            assert read_lines(spark) == expected
            clock.look()
            expected.append(f"line {number}")
            wait_until(lambda: read_lines(spark) == expected, "the query to look")


def test_a_look_during_a_batch_lets_another_one_follow_it(spark: SparkSession, tmp_path: Path) -> None:
    with running(spark, tmp_path) as query:
        clock = TriggerClock(spark, query)
        for number in range(LOOKS):
            (tmp_path / f"{number}.txt").write_text(f"line {number}\n")
            clock.look()
        wait_until(lambda: len(read_lines(spark)) == LOOKS, "the query to read all files")


def test_a_query_that_cannot_read_its_checkpoint_has_no_clock(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "read"
    for made in (checkpoint / "offsets", folder):
        made.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (checkpoint / "offsets" / "0").write_text("damaged")
    lines = spark.readStream.text(str(folder)).writeStream.format("noop")
    query = lines.option("checkpointLocation", str(checkpoint)).trigger(**STEP).start()
    with pytest.raises(QueryHasEnded):
        TriggerClock(spark, query)
    stop_after_batch(query)
    assert not query.isActive
