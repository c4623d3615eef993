"""What the job keeps in the checkpoint folder, through a real session's Hadoop file systems."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming import checkpoint
from streaming.checkpoint import STARTS_KEPT, Checkpoint, MadeWith, held, local_path
from streaming.errors import CannotRun
from streaming.jars import resolve_jars
from streaming.job import check_against_checkpoint
from streaming.options import JobOptions, load_options
from streaming.session import spark_session, spark_settings
from streaming.state_stores import PROVIDER, STATE_STORES
from streaming.topics import Partitions

ROCKSDB = STATE_STORES["rocksdb"][PROVIDER]
PLAN = f"""v1
{{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{{"spark.sql.shuffle.partitions":"3","{PROVIDER}":"{ROCKSDB}"}}}}
{{"group-requests":{{"0":5,"1":7}}}}"""


def options_for(folder: Path, **flags: object) -> JobOptions:
    given = {"bootstrap_servers": "kafka:9092", "checkpoint": str(folder), "master": "local[1]"}
    return load_options({**given, "driver_memory": "512m", **flags}, {})


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    options = options_for(tmp_path_factory.mktemp("checkpoint"))
    with spark_session(spark_settings(options, resolve_jars())) as session:
        yield session


def test_starts_are_kept_in_order_the_last_hundred(spark: SparkSession, tmp_path: Path) -> None:
    kept = Checkpoint(spark, tmp_path.as_uri())
    assert kept.record_start(1_000) == (1_000,)
    assert kept.record_start(900) == (900, 1_000)
    for number in range(STARTS_KEPT):
        starts = kept.record_start(2_000 + number)
    assert starts == tuple(range(2_000, 2_000 + STARTS_KEPT))
    assert Checkpoint(spark, tmp_path.as_uri()).record_start(9_999)[-2:] == (2_000 + STARTS_KEPT - 1, 9_999)


def test_a_checkpoint_says_what_it_was_made_with(spark: SparkSession, tmp_path: Path) -> None:
    assert Checkpoint(spark, tmp_path.as_uri()).made_with() is None
    (tmp_path / "offsets").mkdir()
    assert Checkpoint(spark, tmp_path.as_uri()).made_with() is None
    (tmp_path / "offsets" / "9").write_text(PLAN)
    (tmp_path / "offsets" / "10").write_text(PLAN.replace('"3"', '"4"'))
    assert Checkpoint(spark, tmp_path.as_uri()).made_with() == MadeWith(4, {"group-requests": 2}, "rocksdb")
    (tmp_path / "offsets" / "11").write_text(PLAN.replace(ROCKSDB, "some.OtherProvider"))
    assert Checkpoint(spark, tmp_path.as_uri()).made_with() == MadeWith(3, {"group-requests": 2}, None)


def test_a_plan_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "9").write_text("v1\n{}")
    with pytest.raises(CannotRun, match="offsets/9 is not a batch that Spark has planned"):
        Checkpoint(spark, tmp_path.as_uri()).made_with()


MADE_WITH = MadeWith(3, {"group-requests": 2}, "rocksdb")
AS_MADE = Partitions(requests=2, responses=8, directory=1)


def test_options_and_topics_that_fit_a_checkpoint_are_taken(tmp_path: Path) -> None:
    asked: tuple[dict[str, object], ...] = ({}, {"state_partitions": 3}, {"state_store": "rocksdb"})
    for flags in asked:
        assert check_against_checkpoint(MADE_WITH, options_for(tmp_path, **flags), AS_MADE) == (3, "rocksdb")
    # A topic may have grown: every partition is read, and a request in any of them is taken.
    assert check_against_checkpoint(MADE_WITH, options_for(tmp_path), replace(AS_MADE, requests=4)) == (3, "rocksdb")


@pytest.mark.parametrize(
    ("flags", "partitions", "problem"),
    [
        ({"state_partitions": 2}, 2, "made with state-partitions 3, the options say 2"),
        ({"state_store": "memory"}, 2, "made with state-store rocksdb, the options say memory"),
        ({"topic_prefix": "other-"}, 2, "belongs to group-requests, not to other-group-requests"),
        ({}, 1, "knows 2 partitions of group-requests, which has 1"),
    ],
)
def test_what_does_not_fit_a_checkpoint_is_refused(
    tmp_path: Path, flags: dict[str, object], partitions: int, problem: str
) -> None:
    with pytest.raises(CannotRun, match=problem):
        check_against_checkpoint(MADE_WITH, options_for(tmp_path, **flags), replace(AS_MADE, requests=partitions))


def test_a_checkpoint_of_another_provider_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="a state store that this job does not use"):
        check_against_checkpoint(MADE_WITH._replace(state_store=None), options_for(tmp_path), AS_MADE)


def test_a_checkpoint_is_held_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LOCK_LIMIT_SECONDS", 0.1)
    with held(tmp_path), pytest.raises(CannotRun, match="in use by another job"), held(tmp_path):
        pass
    with held(tmp_path):
        pass


def test_it_is_held_as_long_as_a_process_lives_that_inherited_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LOCK_LIMIT_SECONDS", 0.1)
    with held(tmp_path) as descriptor:
        waiting = [sys.executable, "-c", "input()"]
        heir = subprocess.Popen(waiting, stdin=subprocess.PIPE, pass_fds=[descriptor])
    try:
        with pytest.raises(CannotRun), held(tmp_path):
            pass
    finally:
        heir.kill()
        heir.wait()
    with held(tmp_path):
        pass


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
def test_local_locations_are_told_from_others(location: str, folder: str | None) -> None:
    assert local_path(location) == (None if folder is None else Path(folder))
