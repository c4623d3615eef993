"""The coordinator's query.

group-requests -> key by group id -> the group's state machine -> responses, journal, directory, rejects
"""

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.contract.topics import LONGEST_GROUP_ID_BYTES
from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.monitoring.metrics import observe_measures
from streaming.job.operator import INPUT_COLUMNS
from streaming.job.options import JobOptions
from streaming.job.parts import JobParts

WARM_UP_INTERVAL_MS = 500
"""A batch of the warm-up takes as long as one of the coordinator; more of them would take the active job's cores."""

LOG_APPEND_TIME = 1
"""Kafka's number of this timestamp type, in the column ``timestampType``."""


def coordinator_query(
    requests: DataFrame,
    options: JobOptions,
    settings: Settings,
    state_partitions: int,
    parts: JobParts,
    interval_ms: int,
) -> DataStreamWriter:
    """The whole query, from :func:`requests_by_group` to the sink's topics; not started.

    ``interval_ms``: the interval in which Spark looks for requests.
    """
    return (
        _output_rows(requests, settings, state_partitions, parts)
        .writeStream.format("kafka")
        .options(**{**parts.sink, **_kafka_settings(options)})
        .option("checkpointLocation", checkpoint_location(options.checkpoint))
        .queryName("group-coordinator")
        .outputMode("append")
        .trigger(processingTime=f"{interval_ms} milliseconds")
    )


def warm_up_query(
    spark: SparkSession, options: JobOptions, settings: Settings, state_partitions: int, parts: JobParts, folder: Path
) -> DataStreamWriter:
    """A query of the same shape that answers nobody, with groups of its own in ``folder``; not started.

    It reads what the clients send from now on. So Spark has loaded and compiled its code, and the Python workers have
    theirs, before the coordinator's query begins.
    """
    latest = parts._replace(source={**parts.source, "startingOffsets": "latest"})
    return (
        _output_rows(requests_by_group(spark, options, latest), settings, state_partitions, parts)
        .writeStream.format("noop")
        .option("checkpointLocation", folder.as_uri())
        .queryName("warm-up")
        .outputMode("append")
        .trigger(processingTime=f"{WARM_UP_INTERVAL_MS} milliseconds")
    )


def requests_by_group(spark: SparkSession, options: JobOptions, parts: JobParts) -> DataFrame:
    """The requests with the groups that they are for: the part of the query that is the same for each of its starts.

    It is most of the calls into the JVM that a query needs, so a job that stands by has it before it takes over.
    """
    requests = (
        spark.readStream.format("kafka")
        .options(**{**parts.source, **_kafka_settings(options)})
        .option("subscribe", options.topics.requests)
        .option("maxOffsetsPerTrigger", options.max_requests_per_batch)
        .load()
    )
    return _by_group(_without_wake_events(requests), options.max_request_bytes)


def _output_rows(requests: DataFrame, settings: Settings, state_partitions: int, parts: JobParts) -> DataFrame:
    """The rows for the sink, of the requests by group."""
    if state_partitions == 1:
        # One task reads all partitions and keeps the groups: no shuffle, no second stage.
        requests = requests.coalesce(1)
    rows = parts.rows_of_groups(requests.groupBy("groupId"), settings)
    # A row without a topic has nothing but measures.
    return observe_measures(rows).where(sf.col("topic").isNotNull())


def _without_wake_events(requests: DataFrame) -> DataFrame:
    """The requests without the job's wake events, which are the deadline checks that have no key."""
    key, value = sf.col("key"), sf.col("value")
    return requests.where(key.isNotNull() | value.isNull() | (value != sf.lit(DEADLINE_CHECK)))


def _kafka_settings(options: JobOptions) -> dict[str, str]:
    return {f"kafka.{key}": value for key, value in options.java_client_config.items()}


def _by_group(requests: DataFrame, limit: int) -> DataFrame:
    """The columns of :class:`KafkaRecord`, and ``groupId``: the key, with invalid UTF-8 replaced; Arrow fails on it.

    A key or a value of more than ``limit`` bytes is cut here, so that no Python process holds what a sender has
    compressed. The operator rejects such a record, as it does one without a key, one whose key is not UTF-8, and one
    whose key is longer than a group id: they only share a name with a group here.
    """
    group_id = sf.substring(sf.coalesce(sf.col("key"), sf.lit(b"")), 1, LONGEST_GROUP_ID_BYTES + 1).cast("string")
    changed = {
        "timestamp": sf.unix_millis(_trusted_time()),
        "key": _cut(sf.col("key"), limit),
        "value": _cut(sf.col("value"), limit),
    }
    passed = [changed.get(name, sf.col(name)).alias(name) for name in INPUT_COLUMNS]
    return requests.select(sf.make_valid_utf8(group_id).alias("groupId"), *passed)


def _cut(column: Column, limit: int) -> Column:
    """A binary column, where it exceeds the limit cut and followed by its size, as in :class:`KafkaRecord`."""
    size = sf.octet_length(column)
    cut = sf.concat(sf.substring(column, 1, limit), size.cast("string").cast("binary"))
    return sf.when(size > limit, cut).otherwise(column)


def _trusted_time() -> Column:
    """The append time of a request; of one whose client has chosen the time, that of the batch.

    A client whose clock is behind would seem silent, and be expelled. Spark keeps the batch's time with the batch.
    """
    is_append_time = sf.col("timestampType") == LOG_APPEND_TIME
    return sf.when(is_append_time, sf.col("timestamp")).otherwise(sf.current_timestamp())
