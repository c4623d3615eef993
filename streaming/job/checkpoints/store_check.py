"""A look at the store of a checkpoint, which gives up within half a minute; a job that runs waits for minutes."""

from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from streaming.job.checkpoints.store_failures import names_of_causes, store_failure
from streaming.job.spark_internals.java_objects import JavaFailure, hadoop_configuration, java_virtual_machine

IMPATIENT = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "0",
    "fs.s3a.retry.throttle.limit": "0",
    # S3A takes no shorter ones.
    "fs.s3a.connection.establish.timeout": "15s",
    "fs.s3a.connection.timeout": "15s",
}
"""S3A's settings for the look, in place of its patience of minutes. Settings of a bucket come before them."""

HARMLESS = frozenset({"FileNotFoundException", "AWSServiceThrottledException", "AWSStatus500Exception"})
"""The folder does not exist yet, or the store may work in a moment."""


def require_reachable(spark: SparkSession, location: str) -> None:
    """Check that the store of a location is there and lets this user look.

    Raises:
        CannotRun: it is not, or does not. A store that is only busy is none of that.
    """
    jvm = java_virtual_machine(spark)
    path = jvm.org.apache.hadoop.fs.Path(location)
    configuration: Any = jvm.org.apache.hadoop.conf.Configuration(hadoop_configuration(spark))
    for key, value in IMPATIENT.items():
        configuration.set(key, value)
    try:
        # Not the instance that others use.
        with closing(jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), configuration)) as files:
            # A list, since a store explains no refusal of a HEAD.
            files.listFiles(path, False)
    except JavaFailure as failure:
        if HARMLESS.isdisjoint(names_of_causes(failure)):
            raise store_failure(location, failure) from failure
