"""The start of the coordinator's query: the checkpoint is checked, and the settings of its groups are recorded."""

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.groups.consumer.rebalance.heartbeats import reconciling_heartbeat_interval_ms
from coordinator_logic.timing.sessions import late_answer_ms
from streaming.contract.errors import CannotRun
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER, TOPIC_FOLDER, Checkpoint, check_layout, check_topic_id
from streaming.job.checkpoints.damage import check_damage
from streaming.job.election.announcements import Reach
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.lifecycle.starts import QueryReach, new_start
from streaming.job.monitoring.metrics import Progress
from streaming.job.monitoring.progress_file import recording_progress
from streaming.job.monitoring.readers import feeding_metrics
from streaming.job.monitoring.slow_batches.recorder import recording_slow_batches
from streaming.job.options import JobOptions
from streaming.job.pace.pace_thread import PACE, pacing
from streaming.job.query import coordinator_query
from streaming.job.rows.records import SizeLimits
from streaming.job.senders import Senders, missing_keys, read_senders
from streaming.job.spark_internals import registry
from streaming.job.spark_internals.trigger_clock import STEP_MS
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS, DEFAULT_STATE_STORE, STATE_STORES, StateStore
from streaming.job.topics.creation import admin_client
from streaming.job.topics.inspection import TopicInspection
from streaming.job.topics.layout import Partitions
from streaming.job.topics.losses import has_records, lost_requests
from streaming.job.wake_events.wake_thread import waking_due_groups

WAKE_EVENTS = "wake-events"
"""The name of the thread among the readers in the metrics."""


def start_query(
    session: JobSession, partitions: Partitions, stack: ExitStack, report: Report, *, after_rival: bool = False
) -> StreamingQuery:
    """Start the query on its checkpoint, for topics with so many partitions; ``stack`` ends what follows its batches.

    ``after_rival``: the newest batch was planned by the job that was active before this one.

    Raises:
        CannotRun: the checkpoint does not fit the options or the topics.
    """
    start = _recorded_start(session, partitions, report, after_rival=after_rival)
    for line in missing_keys(start.starts, start.senders.keys):
        report(f"warning: {line}")
    settings = group_settings(session.options, start.senders, partitions, start.starts)
    # Without a record to read, Spark would run no batch, and groups that are due would not be called.
    session.wakes.append_first()
    session.phases.end("wake event appended")
    interval_ms = STEP_MS if _has_pace(session) else session.options.batch_interval_ms
    query = coordinator_query(
        session.requests, session.options, settings, start.state_partitions, session.parts, interval_ms
    ).start()
    session.phases.end("query started")
    _follow_batches(session, query, partitions, stack, is_new=start.is_new)
    # Only now: the readers of a query before this one had ended with it.
    session.metrics.note_query_start()
    return query


class _RecordedStart(NamedTuple):
    """A start that is in the checkpoint: it is the last of ``starts``. ``is_new``: the checkpoint had no batch."""

    starts: tuple[Start, ...]
    senders: Senders
    state_partitions: int
    is_new: bool


def _recorded_start(
    session: JobSession, partitions: Partitions, report: Report, *, after_rival: bool
) -> _RecordedStart:
    """Check the checkpoint, and record a start in it. Raises CannotRun."""
    spark, options, checkpoint, candidate = session.spark, session.options, session.checkpoint, session.candidate
    with checkpoint.seen_once():
        if registry.is_used(registry.CHECKPOINT_LAYOUT, spark):
            check_damage(checkpoint, options.checkpoint)
        session.phases.end("damage looked for")
        is_new = checkpoint.is_new()
        state_partitions, state_store = _checked_checkpoint(
            checkpoint, options, session.watch.found, partitions, candidate.reach_before, report
        )
        session.phases.end("topics compared")
        configure_state(spark, state_partitions, state_store)
        if not checkpoint.starts() and not is_new:
            report(_lost_starts(options))
        config = protocol_config(options, partitions)
        senders = read_senders(options)
        session.phases.end("settings read")
        starts = new_start(session, checkpoint, config, senders, partitions, report, after_rival=after_rival)
    if (
        candidate.overtaken is not None
        and checkpoint.planned(options.topics.requests).time != starts[-1].last_batch_time
    ):
        # That job has planned another batch meanwhile. It can plan no further ones once Spark has one of this job's.
        starts = new_start(session, checkpoint, config, senders, partitions, report, after_rival=True)
    session.phases.end("start announced")
    return _RecordedStart(starts, senders, state_partitions, is_new)


def _has_pace(session: JobSession) -> bool:
    return registry.is_used(registry.TRIGGER_CLOCK, session.spark)


def _follow_batches(
    session: JobSession, query: StreamingQuery, partitions: Partitions, stack: ExitStack, *, is_new: bool
) -> None:
    """Start what begins the query's batches, and what reads about them; ``stack`` ends it."""
    spark, options = session.spark, session.options
    pace = stack.enter_context(pacing(spark, query, options, partitions.requests)) if _has_pace(session) else None
    note_slow_batch = stack.enter_context(recording_slow_batches(spark, session.metrics))

    def on_batch(progress: Progress) -> None:
        note_slow_batch(progress)
        if pace is not None and progress.is_followed:
            pace.note_rest()

    is_waking = stack.enter_context(
        waking_due_groups(session.wakes, query, options.batch_interval_ms, on_batch, is_new=is_new)
    )
    session.candidate.follow(QueryReach(query, session.watch.found.topic_ids.get(options.topics.requests)))
    if options.metrics_port is not None:
        session.metrics.add_reader(WAKE_EVENTS, is_waking)
        if pace is not None:
            session.metrics.add_reader(PACE, pace.is_alive)
        stack.enter_context(
            feeding_metrics(session.metrics, query, options.librdkafka_config, options.topics.directory)
        )
    if options.progress_file is not None:
        stack.enter_context(recording_progress(query, Path(options.progress_file)))


def _lost_starts(options: JobOptions) -> str:
    return (
        f"warning: checkpoint {options.checkpoint} has lost its folder {STARTS_FOLDER} with the times of earlier "
        'starts (see "Damage" in docs/operations/recovery.md)'
    )


def configure_state(spark: SparkSession, state_partitions: int, state_store: StateStore) -> None:
    """Set what fixes the layout of the state."""
    for key, value in STATE_STORES[state_store].items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions))


def protocol_config(options: JobOptions, partitions: Partitions) -> CoordinatorConfig:
    """The configuration of the protocol, with what the job sets; the epoch is not known yet."""
    return msgspec.structs.replace(
        options.protocol,
        requests_topic=options.topics.requests,
        requests_partitions=partitions.requests,
        late_answer_ms=late_answer_ms(options.batch_interval_ms),
        logic_version=LOGIC_VERSION,
        group_consumer_reconciling_heartbeat_interval_ms=reconciling_heartbeat_interval_ms(
            options.protocol.group_consumer_reconciling_heartbeat_interval_ms, options.batch_interval_ms
        ),
    )


def group_settings(
    options: JobOptions, senders: Senders, partitions: Partitions, starts: tuple[Start, ...]
) -> Settings:
    """The operator's configuration; of ``starts``, the last one is that of the query."""
    return Settings(
        options.topics,
        partitions.responses,
        (starts[-1].config if starts else None) or protocol_config(options, partitions),
        starts,
        SizeLimits(request=options.max_request_bytes),
        has_deadline_checks=True,
        identity_keys=senders.keys,
        acls=senders.acls,
        journal_partitions=starts[-1].journal_partitions if starts else 0,
        directory_partitions=starts[-1].directory_partitions if starts else 0,
    )


def _require_no_history(options: JobOptions, found: TopicInspection) -> None:
    """Refuse a new checkpoint for topics on which a coordinator had groups.

    Raises:
        CannotRun: the journal has entries.
    """
    journal = options.topics.journal
    with admin_client(options.librdkafka_config) as admin:
        if not has_records(admin, journal, found.partitions[journal]):
            return
    raise CannotRun(
        f"checkpoint {options.checkpoint} is new, but a coordinator has had groups on these topics: {journal} has "
        "entries. Give its checkpoint; or restore a backup with `checkpoint restore`; or rebuild the groups from the "
        "journal with `checkpoint rebuild`; or start without them: --new-checkpoint"
    )


def _checked_checkpoint(
    checkpoint: Checkpoint,
    options: JobOptions,
    found: TopicInspection,
    partitions: Partitions,
    before: Reach,
    report: Report,
) -> tuple[int, StateStore]:
    """Check that the checkpoint fits; returns its state partitions and state store, for a new one those to use."""
    requests = options.topics.requests
    topic_id = found.topic_ids.get(requests)
    is_new = checkpoint.is_new()
    if is_new and not options.new_checkpoint:
        _require_no_history(options, found)
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
        answered = before.read_until if before.topic_id == topic_id else {}
        for loss in lost_requests(admin, requests, checkpoint.offsets_read(requests), answered):
            report(f"warning: {loss}")
    layout = checkpoint.layout()
    if layout is None:
        return options.state_partitions or DEFAULT_STATE_PARTITIONS, options.state_store or DEFAULT_STATE_STORE
    return check_layout(layout, options, partitions)
