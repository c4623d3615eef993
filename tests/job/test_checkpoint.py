"""The checkpoint folder, read and written through the Hadoop file systems of a real session."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.errors import CannotRun
from streaming.embedded.jars import resolve_jars
from streaming.job.checkpoints.checkpoint import (
    STARTS_KEPT,
    Checkpoint,
    CheckpointLayout,
    check_layout,
    check_topic_id,
)
from streaming.job.checkpoints.local_folder import local_path
from streaming.job.checkpoints.lock import checkpoint_lock
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions, load_options
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.registry import OFF_VARIABLE, OFFSET_LOG
from streaming.job.state_stores import PROVIDER, STATE_STORES
from streaming.job.topics.layout import Partitions
from tests.support.coordinator_process import SHORT_LIVED_JVM

ROCKSDB = STATE_STORES["rocksdb"][PROVIDER]
PLAN = f"""v1
{{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{{"spark.sql.shuffle.partitions":"3","{PROVIDER}":"{ROCKSDB}"}}}}
{{"group-requests":{{"0":5,"1":7}}}}"""


def options_for(folder: Path, **flags: object) -> JobOptions:
    given = {"bootstrap_servers": "kafka:9092", "checkpoint": str(folder), "master": "local[1]"}
    return load_options({**given, "driver_memory": "512m", **SHORT_LIVED_JVM, **flags}, {})


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    options = options_for(tmp_path_factory.mktemp("checkpoint"))
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


def test_the_last_hundred_starts_are_recorded_in_order(spark: SparkSession, tmp_path: Path) -> None:
    kept = Checkpoint(spark, tmp_path.as_uri())
    assert kept.starts() == []
    first = Start(started_at=1_000, config=CoordinatorConfig(job_epoch=7), read_until={0: 5, 11: 6})
    kept.record_start(first)
    kept.record_start(Start(started_at=900))
    assert kept.starts() == [Start(started_at=900), first]
    for number in range(STARTS_KEPT):
        kept.record_start(Start(started_at=2_000 + number))
    times = [start.started_at for start in Checkpoint(spark, tmp_path.as_uri()).starts()]
    assert times == list(range(2_000, 2_000 + STARTS_KEPT))


@pytest.mark.parametrize("content", ["", '{"startedAt":1'])
def test_a_start_of_an_earlier_release_or_a_torn_one_has_its_time(
    spark: SparkSession, tmp_path: Path, content: str
) -> None:
    (tmp_path / "starts").mkdir()
    (tmp_path / "starts" / "1000").write_text(content)
    assert Checkpoint(spark, tmp_path.as_uri()).starts() == [Start(started_at=1_000)]


def test_the_newest_batch_says_how_far_the_requests_were_read(spark: SparkSession, tmp_path: Path) -> None:
    kept = Checkpoint(spark, tmp_path.as_uri())
    assert kept.planned("group-requests") == ({}, 0, True)
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    (tmp_path / "offsets" / "0").write_text(PLAN)
    assert kept.planned("group-requests") == ({0: 5, 1: 7}, 5, False)
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    assert kept.planned("group-requests") == ({0: 5, 1: 7}, 5, True)


def test_the_layout_is_that_of_the_newest_batch(spark: SparkSession, tmp_path: Path) -> None:
    assert Checkpoint(spark, tmp_path.as_uri()).layout() is None
    (tmp_path / "offsets").mkdir()
    assert Checkpoint(spark, tmp_path.as_uri()).layout() is None
    assert Checkpoint(spark, tmp_path.as_uri()).is_new()
    (tmp_path / "offsets" / "9").write_text(PLAN)
    assert not Checkpoint(spark, tmp_path.as_uri()).is_new()
    (tmp_path / "offsets" / "10").write_text(PLAN.replace('"3"', '"4"'))
    assert Checkpoint(spark, tmp_path.as_uri()).layout() == CheckpointLayout(4, {"group-requests": 2}, "rocksdb")
    (tmp_path / "offsets" / "11").write_text(PLAN.replace(ROCKSDB, "some.OtherProvider"))
    assert Checkpoint(spark, tmp_path.as_uri()).layout() == CheckpointLayout(3, {"group-requests": 2}, None)


def test_a_batch_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "9").write_text("v1\n{}")
    with pytest.raises(CannotRun, match="offsets/9 is not a batch that Spark has planned"):
        Checkpoint(spark, tmp_path.as_uri()).layout()


def test_a_batch_whose_file_a_power_failure_has_emptied_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "9").touch()
    with pytest.raises(CannotRun, match=r'offsets/9 .* is empty, as after a power failure \(see "Power failures"'):
        Checkpoint(spark, tmp_path.as_uri()).layout()


def test_a_batch_that_an_unknown_spark_has_written_is_not_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OFF_VARIABLE, OFFSET_LOG.name)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "9").write_text("v9\n{}")
    kept = Checkpoint(spark, tmp_path.as_uri())
    assert kept.layout() is None
    assert not kept.is_new()


def test_the_id_of_the_requests_topic_is_kept_and_replaced(spark: SparkSession, tmp_path: Path) -> None:
    kept = Checkpoint(spark, tmp_path.as_uri())
    assert kept.requests_topic_id() is None
    kept.record_requests_topic_id("-_former-topic-of-id_A")
    kept.record_requests_topic_id("5jQ7nBq2Q5yVY0V3b-V8_w")
    assert Checkpoint(spark, tmp_path.as_uri()).requests_topic_id() == "5jQ7nBq2Q5yVY0V3b-V8_w"


def test_what_was_read_is_what_the_newest_complete_batch_has_read(spark: SparkSession, tmp_path: Path) -> None:
    kept = Checkpoint(spark, tmp_path.as_uri())
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "9").write_text(PLAN)
    (tmp_path / "offsets" / "10").write_text(PLAN.replace('"0":5', '"0":50'))
    assert kept.offsets_read("group-requests") == {}
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "9").write_text("v1\n{}")
    assert kept.offsets_read("group-requests") == {0: 5, 1: 7}
    assert kept.offsets_read("another-topic") == {}


@pytest.mark.parametrize(("kept", "found"), [("a", "a"), (None, "a"), ("a", None), (None, None)])
def test_a_topic_with_the_kept_id_or_without_a_known_one_is_accepted(
    tmp_path: Path, kept: str | None, found: str | None
) -> None:
    check_topic_id(kept, found, options_for(tmp_path))


def test_a_topic_with_another_id_is_refused_with_the_ways_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"deleted and created again: .* id a, .* id b .* remove .* requests-topic"):
        check_topic_id("a", "b", options_for(tmp_path))


LAYOUT = CheckpointLayout(3, {"group-requests": 2}, "rocksdb")
PARTITIONS = Partitions(requests=2, responses=8, directory=1)


def test_options_and_topics_that_fit_a_checkpoint_are_accepted(tmp_path: Path) -> None:
    accepted: tuple[dict[str, object], ...] = ({}, {"state_partitions": 3}, {"state_store": "rocksdb"})
    for flags in accepted:
        assert check_layout(LAYOUT, options_for(tmp_path, **flags), PARTITIONS) == (3, "rocksdb")
    # A topic may have got more partitions since: the job reads all of them.
    assert check_layout(LAYOUT, options_for(tmp_path), replace(PARTITIONS, requests=4)) == (3, "rocksdb")


@pytest.mark.parametrize(
    ("flags", "partitions", "problem"),
    [
        ({"state_partitions": 2}, 2, "made with state-partitions 3, the options say 2"),
        ({"state_store": "memory"}, 2, "made with state-store rocksdb, the options say memory"),
        ({"topic_prefix": "other-"}, 2, "belongs to group-requests, not to other-group-requests"),
        ({}, 1, "has offsets of 2 partitions of group-requests, which has 1"),
    ],
)
def test_options_and_topics_that_do_not_fit_a_checkpoint_are_refused(
    tmp_path: Path, flags: dict[str, object], partitions: int, problem: str
) -> None:
    with pytest.raises(CannotRun, match=problem):
        check_layout(LAYOUT, options_for(tmp_path, **flags), replace(PARTITIONS, requests=partitions))


def test_a_checkpoint_of_an_unknown_state_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="a state store that this job does not use"):
        check_layout(LAYOUT._replace(state_store=None), options_for(tmp_path), PARTITIONS)


def test_one_job_at_a_time_has_the_lock(tmp_path: Path) -> None:
    with checkpoint_lock(tmp_path) as first, checkpoint_lock(tmp_path) as second:
        first.acquire()
        with pytest.raises(CannotRun, match=rf"in use by process {os.getpid()} \("):
            second.acquire(0.1)
        first.release()
        second.acquire(0.1)


def test_the_lock_lasts_as_long_as_a_process_that_inherited_it(
    tmp_path: Path,
) -> None:
    with checkpoint_lock(tmp_path) as lock:
        lock.acquire()
        waiting = [sys.executable, "-c", "input()"]
        child = subprocess.Popen(waiting, stdin=subprocess.PIPE, pass_fds=lock.descriptors)
    with checkpoint_lock(tmp_path) as lock:
        try:
            with pytest.raises(CannotRun):
                lock.acquire(0.1)
        finally:
            child.kill()
            child.wait()
        lock.acquire(0.1)


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("a", os.path.abspath("a")),
        ("s3a://bucket/a", None),
        ("hdfs://name/a", None),
    ],
)
def test_local_locations_are_recognized(location: str, folder: str | None) -> None:
    assert local_path(location) == (None if folder is None else Path(folder))
