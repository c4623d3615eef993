"""The start of the coordinator's query: the checkpoint is checked, and the settings of its groups are recorded."""

import time
from contextlib import ExitStack

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_logic.timing.sessions import late_answer_ms
from streaming.contract.identity import read_identity_keys
from streaming.job.checkpoints.checkpoint import (
    STARTS_FOLDER,
    TOPIC_FOLDER,
    Checkpoint,
    check_layout,
    check_topic_id,
)
from streaming.job.checkpoints.damage import check_damage
from streaming.job.checkpoints.location import checkpoint_location
from streaming.job.group_batch.settings import Settings
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.monitoring.readers import feeding_metrics
from streaming.job.options import JobOptions
from streaming.job.query import coordinator_query
from streaming.job.rows import Limits
from streaming.job.spark_internals import registry
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS, DEFAULT_STATE_STORE, STATE_STORES, StateStore
from streaming.job.topics.creation import admin_client
from streaming.job.topics.inspection import TopicInspection
from streaming.job.topics.layout import Partitions
from streaming.job.topics.losses import lost_requests


def start_query(session: JobSession, partitions: Partitions, stack: ExitStack, report: Report) -> StreamingQuery:
    """Start the query on its checkpoint, for topics with so many partitions; ``stack`` ends the count of its batches.

    Raises:
        CannotRun: the checkpoint does not fit the options or the topics.
    """
    spark, options, watch, metrics, _, _ = session
    checkpoint = Checkpoint(spark, checkpoint_location(options))
    if registry.is_used(registry.CHECKPOINT_LAYOUT, spark):
        check_damage(checkpoint, options.checkpoint)
    is_new = checkpoint.is_new()
    state_partitions, state_store = _checked_checkpoint(checkpoint, options, watch.found, partitions, report)
    configure_state(spark, state_partitions, state_store)
    starts = checkpoint.record_start(time.time_ns() // 1_000_000)
    if len(starts) == 1 and not is_new:
        report(
            f"warning: checkpoint {options.checkpoint} has lost its folder {STARTS_FOLDER} with the times of earlier "
            'starts (see "Damage" in docs/operations.md)'
        )
    settings = group_settings(options, partitions, starts)
    query = coordinator_query(spark, options, settings, state_partitions).start()
    if options.metrics_port is not None:
        stack.enter_context(feeding_metrics(metrics, query, options.librdkafka_config, options.topics.directory))
    return query


def configure_state(spark: SparkSession, state_partitions: int, state_store: StateStore) -> None:
    for key, value in STATE_STORES[state_store].items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions))


def group_settings(options: JobOptions, partitions: Partitions, starts: tuple[int, ...]) -> Settings:
    config = msgspec.structs.replace(
        options.protocol,
        requests_topic=options.topics.requests,
        requests_partitions=partitions.requests,
        late_answer_ms=late_answer_ms(options.batch_interval_ms),
    )
    return Settings(
        options.topics,
        partitions.responses,
        config,
        starts,
        Limits(request=options.max_request_bytes),
        has_deadline_checks=True,
        identity_keys=read_identity_keys(options.identity_key_file),
    )


def _checked_checkpoint(
    checkpoint: Checkpoint, options: JobOptions, found: TopicInspection, partitions: Partitions, report: Report
) -> tuple[int, StateStore]:
    """Check that the checkpoint fits; returns its state partitions and state store, for a new one those to use."""
    requests = options.topics.requests
    topic_id = found.topic_ids.get(requests)
    is_new = checkpoint.is_new()
    if is_new:
        report(f"starting with no groups: checkpoint {options.checkpoint} is new")
    else:
        report(f"loading groups from checkpoint {options.checkpoint}")
        check_topic_id(checkpoint.requests_topic_id(), topic_id, options)
        if checkpoint.requests_topic_id() is None:
            report(
                f"warning: checkpoint {options.checkpoint} has no folder {TOPIC_FOLDER}: it adopts {requests} with the "
                f"id {topic_id} as the topic that it has read"
            )
    if topic_id is not None and (is_new or checkpoint.requests_topic_id() is None):
        checkpoint.record_requests_topic_id(topic_id)
    with admin_client(options.librdkafka_config) as admin:
        for loss in lost_requests(admin, requests, checkpoint.offsets_read(requests)):
            report(f"warning: {loss}")
    layout = checkpoint.layout()
    if layout is None:
        return options.state_partitions or DEFAULT_STATE_PARTITIONS, options.state_store or DEFAULT_STATE_STORE
    return check_layout(layout, options, partitions)
