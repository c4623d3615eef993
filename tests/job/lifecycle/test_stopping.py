"""The end of a query: in a batch that takes longer than a stop waits, and between two batches."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.embedded.jars import resolve_jars
from streaming.job.lifecycle.stopping import has_ended
from streaming.job.options import load_options
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.batch_end import IDLE_SECONDS, stop_after_batch
from streaming.job.spark_internals.trigger_clock import STEP_MS, HeldTriggers, TriggerClock
from tests.support.coordinator_process import SHORT_LIVED_JVM
from tests.support.waiting import LIMIT_SECONDS, wait_until

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("stopping")
    given = {"bootstrap_servers": "kafka:9092", "checkpoint": str(folder / "unused"), "master": "local[1]"}
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


class PacedQuery:
    """A query with a trigger clock, whose batches wait until they may end."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self.batches: list[int] = []
        self.may_end = threading.Event()
        self.may_end.set()
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = source.writeStream.foreachBatch(self._run).option("checkpointLocation", str(checkpoint))
        self.query = writer.trigger(processingTime=f"{STEP_MS} milliseconds").start()
        self.clock = TriggerClock(spark, self.query)

    def _run(self, _rows: DataFrame, batch: int) -> None:
        self.batches.append(batch)
        self.may_end.wait(LIMIT_SECONDS)

    def run_batch(self) -> None:
        """Let it look, and return when a batch has begun."""
        count = len(self.batches)
        self.clock.look()
        wait_until(lambda: len(self.batches) > count, "a batch")


@pytest.fixture
def paced(spark: SparkSession, tmp_path: Path) -> Iterator[PacedQuery]:
    paced = PacedQuery(spark, tmp_path / "checkpoint")
    try:
        wait_until(lambda: bool(paced.batches), "the first batch")
        yield paced
    finally:
        paced.may_end.set()
        paced.query.stop()


def test_an_idle_query_with_a_trigger_clock_stops_at_once(paced: PacedQuery) -> None:
    wait_until(lambda: not paced.query.status["isTriggerActive"], "the end of the first batch")
    before = list(paced.batches)
    began = time.monotonic()
    stop_after_batch(paced.query, LIMIT_SECONDS)
    assert time.monotonic() - began < IDLE_SECONDS
    assert has_ended(paced.query)
    assert paced.batches == before


def test_a_query_with_a_trigger_clock_stops_after_its_batch_though_it_is_told_to_look(
    paced: PacedQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_held = threading.Event()
    await_idle = HeldTriggers.await_idle

    def noted(held: HeldTriggers, deadline: float) -> None:
        is_held.set()
        await_idle(held, deadline)

    monkeypatch.setattr(HeldTriggers, "await_idle", noted)
    paced.may_end.clear()
    paced.run_batch()
    before = list(paced.batches)
    paced.clock.look()
    stopping = threading.Thread(target=stop_after_batch, args=(paced.query, LIMIT_SECONDS))
    stopping.start()
    assert is_held.wait(LIMIT_SECONDS)
    paced.clock.look()
    assert paced.query.isActive, "a state that is set within a batch could give up the next one"
    paced.may_end.set()
    stopping.join(LIMIT_SECONDS)
    assert has_ended(paced.query)
    assert paced.batches == before
    assert paced.query.exception() is None


def test_held_triggers_wait_until_they_are_let_go(spark: SparkSession, paced: PacedQuery) -> None:
    wait_until(lambda: not paced.query.status["isTriggerActive"], "the end of the first batch")
    paced.may_end.clear()
    paced.run_batch()
    before = list(paced.batches)
    held = HeldTriggers(spark, paced.query)
    paced.clock.look()
    paced.may_end.set()
    held.await_idle(time.monotonic() + LIMIT_SECONDS)
    assert paced.batches == before
    held.let_go()
    wait_until(lambda: len(paced.batches) > len(before), "a batch after the hold")
