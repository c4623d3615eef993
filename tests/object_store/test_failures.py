"""What an object store refuses, or does not answer, is one line that says what to do."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.embedded.ports import free_address
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER, Checkpoint
from streaming.job.checkpoints.file_systems import job_jars
from streaming.job.group_batch.starts import Start
from streaming.job.options import load_options
from streaming.job.session import spark_session, spark_settings
from tests.object_store.server import S3Server
from tests.support.coordinator_process import SHORT_LIVED_JVM

OF_BUCKETS = {
    "other-secret": {"secret.key": "another"},
    "no-credentials": {
        "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
    },
    "no-server": {"endpoint": f"http://{free_address()}", "attempts.maximum": "1", "retry.limit": "1"},
}
"""Settings of single buckets."""


@pytest.fixture(scope="module")
def spark(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    of_buckets = {
        f"spark.hadoop.fs.s3a.bucket.{bucket}.{key}": value
        for bucket, settings in OF_BUCKETS.items()
        for key, value in settings.items()
    }
    given = {"bootstrap_servers": "kafka:9092", "checkpoint": "s3a://any/checkpoint", "master": "local[1]"}
    options = load_options({**given, "driver_memory": "512m", **SHORT_LIVED_JVM, **s3.options, **of_buckets}, {})
    with spark_session(spark_settings(options, job_jars(options.checkpoint))) as session:
        yield session


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("s3a://no-such-bucket/x", "The specified bucket does not exist: create the bucket, or name another one"),
        (
            "s3a://other-secret/x",
            "does not match the signature .*: check the credentials, and that they may list, read",
        ),
        ("s3a://no-credentials/x", "Unable to load credentials .*: give credentials in AWS_ACCESS_KEY_ID"),
        ("s3a://no-server/x", r"Connection refused: check the address \(for s3a:// spark.hadoop.fs.s3a.endpoint\)"),
        ("gs://bucket/x", "no file system for this scheme: add its jars"),
    ],
)
def test_a_failure_names_the_checkpoint_its_cause_and_what_helps(
    spark: SparkSession, s3: S3Server, location: str, says: str
) -> None:
    with pytest.raises(CannotRun, match=f"^checkpoint {re.escape(location)}: .*{says}") as refused:
        Checkpoint(spark, location).names(STARTS_FOLDER)
    assert "\n" not in str(refused.value)
    assert "Exception" not in str(refused.value)


def test_names_and_starts_are_those_of_a_local_folder(spark: SparkSession, s3: S3Server, tmp_path: Path) -> None:
    s3.bucket("names")
    for kept in (Checkpoint(spark, tmp_path.as_uri()), Checkpoint(spark, "s3a://names/of/a [check]{point}*")):
        assert kept.names(STARTS_FOLDER) == []
        kept.record_start(Start(started_at=1_000))
        kept.record_start(Start(started_at=900))
        assert [start.started_at for start in kept.starts()] == [900, 1_000]
        kept.record_requests_topic_id("a-topic")
        kept.record_requests_topic_id("another")
        assert kept.requests_topic_id() == "another"
        assert kept.size("requests-topic/another") == 0
