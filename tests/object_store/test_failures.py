"""What an object store refuses, or does not answer, is one line that says what to do."""

import json
import re
import socket
import time
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
from streaming.job.spark_internals.java_objects import hadoop_configuration, java_virtual_machine
from tests.object_store.proxy import S3Proxy
from tests.object_store.server import S3Server
from tests.support.coordinator_process import SHORT_LIVED_JVM

READER, READERS_SECRET = "a-reader", "a-readers-secret"

START_LIMIT_SECONDS = 60.0
"""For a line about a store that is not there, on a busy machine; a job that runs waits for minutes."""

OF_BUCKETS = {
    "other-secret": {"secret.key": "another"},
    "no-credentials": {
        "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
    },
    "no-server": {"endpoint": f"http://{free_address()}"},
    "reader": {"access.key": READER, "secret.key": READERS_SECRET},
}
"""Settings of single buckets."""


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """An address that accepts connections, and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield "{}:{}".format(*listening.getsockname())


@pytest.fixture(scope="module")
def spark(s3: S3Server, silent: str) -> Iterator[SparkSession]:
    of_buckets = {
        f"spark.hadoop.fs.s3a.bucket.{bucket}.{key}": value
        for bucket, settings in {**OF_BUCKETS, "silent": {"endpoint": f"http://{silent}"}}.items()
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
        ("s3a://silent/x", "nothing answers there: check the address"),
        ("gs://bucket/x", "no file system for this scheme: add its jars"),
    ],
)
def test_a_failure_names_the_checkpoint_its_cause_and_what_helps(
    spark: SparkSession, s3: S3Server, location: str, says: str
) -> None:
    began = time.monotonic()
    with pytest.raises(CannotRun, match=f"^checkpoint {re.escape(location)}: .*{says}") as refused:
        Checkpoint(spark, location).names(STARTS_FOLDER)
    assert time.monotonic() - began < START_LIMIT_SECONDS
    assert "\n" not in str(refused.value)
    assert "Exception" not in str(refused.value)


def test_a_user_who_may_not_write_is_told_so_with_the_first_write(spark: SparkSession, s3: S3Server) -> None:
    s3.bucket("reader")
    s3.add_user(READER, READERS_SECRET)
    allow_reading(spark, "reader", READER)
    kept = Checkpoint(spark, "s3a://reader/x")
    assert kept.names(STARTS_FOLDER) == []
    with pytest.raises(
        CannotRun, match=r"^checkpoint s3a://reader/x: .*check the credentials, and that they may"
    ) as no:
        kept.record_start(Start(started_at=1_000))
    assert "\n" not in str(no.value)


def test_a_store_that_is_busy_is_no_reason_to_refuse_a_start(spark: SparkSession, s3: S3Server) -> None:
    s3.bucket("busy")
    with S3Proxy(s3.address) as proxy:
        hadoop_configuration(spark).set("fs.s3a.bucket.busy.endpoint", f"http://{proxy.address}")
        proxy.is_refusing = True
        kept = Checkpoint(spark, "s3a://busy/x")
        assert proxy.refused
        proxy.is_refusing = False
        assert kept.names(STARTS_FOLDER) == []


def allow_reading(spark: SparkSession, bucket: str, user: str) -> None:
    """Let a user read and list a bucket, and nothing else."""
    jvm, resource = java_virtual_machine(spark), f"arn:aws:s3:::{bucket}"
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": [user]},
        "Action": ["s3:GetObject", "s3:ListBucket"],
        "Resource": [resource, f"{resource}/*"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    # The client of a bucket whose owner this is.
    files = jvm.org.apache.hadoop.fs.Path("s3a://any/").getFileSystem(hadoop_configuration(spark))
    asked = jvm.software.amazon.awssdk.services.s3.model.PutBucketPolicyRequest.builder()
    files.getS3AInternals().getAmazonS3Client("policy").putBucketPolicy(asked.bucket(bucket).policy(policy).build())


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
