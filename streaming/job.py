"""The coordinator's query, and its life from start to stop.

group-requests -> key by group id -> the group's state machine -> responses, journal, directory, rejects
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.checkpoint import Checkpoint, MadeWith, held, local_path
from streaming.errors import CannotRun
from streaming.jars import resolve_jars
from streaming.metrics import Metrics, filled, observed, served
from streaming.operator import INPUT_COLUMNS, OUTPUT_SCHEMA, STATE_SCHEMA, GroupOperator, Settings
from streaming.options import JobOptions
from streaming.python_worker import choose
from streaming.session import (
    JVM_END_LIMIT_SECONDS,
    JVM_IS_GONE,
    SINK,
    SOURCE,
    forget_hadoop_defaults,
    spark_session,
    spark_settings,
)
from streaming.state_stores import DEFAULT_STATE_STORE, STATE_STORES, StateStore
from streaming.topics import Partitions, ensure_topics

DEFAULT_STATE_PARTITIONS = 1
LAST_BATCH_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.1
LINES_OF_A_FAILURE = 12

Report = Callable[[str], None]


class _Signals:
    """SIGTERM and SIGINT: they end the job at once before the query runs, after its batch while it runs.

    Sent twice, they do not wait for the batch. What is sent after that cannot disturb the clearing up.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._running = False
        self._raised = False

    def listen(self) -> None:
        """(Again) be the one who is told; pyspark takes SIGINT for itself when a session starts."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._received)

    def from_now_on_wait_for_the_batch(self) -> None:
        self._running = True
        self.listen()

    def _received(self, _number: int, _frame: object) -> None:
        if not self._running or self.stop.is_set():
            if self._raised:
                return
            self._raised = True
            raise KeyboardInterrupt
        self.stop.set()


def coordinator_query(
    spark: SparkSession, options: JobOptions, settings: Settings, state_partitions: int
) -> DataStreamWriter:
    """The whole query, from topic to topics."""
    kafka = {f"kafka.{key}": value for key, value in options.java_client_config.items()}
    requests = (
        spark.readStream.format("kafka")
        .options(**{**SOURCE, **kafka})
        .option("subscribe", settings.topics.requests)
        .load()
    )
    by_group = _by_group(requests)
    if state_partitions == 1:
        # One task reads all partitions and keeps the groups: no shuffle, no second stage.
        by_group = by_group.coalesce(1)
    rows = by_group.groupBy("groupId").applyInPandasWithState(
        GroupOperator(settings), OUTPUT_SCHEMA, STATE_SCHEMA, "append", "ProcessingTimeTimeout"
    )
    if options.metrics_port is not None:
        rows = observed(rows)
    return (
        rows.drop("measure")
        .writeStream.format("kafka")
        .options(**{**SINK, **kafka})
        .option("checkpointLocation", checkpoint_location(options))
        .queryName("group-coordinator")
        .outputMode("append")
        .trigger(processingTime=f"{options.batch_interval_ms} milliseconds")
    )


def _by_group(requests: DataFrame) -> DataFrame:
    """Every record gets some group: one whose key names none is refused by the operator, which sees the key.

    A string that is not UTF-8 would end the query where it enters Arrow.
    """
    group_id = sf.make_valid_utf8(sf.coalesce(sf.col("key").cast("string"), sf.lit("")))
    timestamp = sf.unix_millis("timestamp").alias("timestamp")
    others = [sf.col(name) for name in INPUT_COLUMNS if name != "timestamp"]
    return requests.select(group_id.alias("groupId"), timestamp, *others)


def checkpoint_location(options: JobOptions) -> str:
    """The checkpoint as Spark is told it: a local folder by its absolute path."""
    folder = local_path(options.checkpoint)
    return options.checkpoint if folder is None else folder.as_uri()


def run_job(options: JobOptions, report: Report = print) -> None:
    """Run the coordinator until SIGTERM or SIGINT; the batch in flight finishes first.

    ``report`` is given a line for everything that its user should know; the one that begins with ``ready`` comes
    when the first batch is complete. Call it from the main thread, which is where Python handles signals. Raises
    :class:`CannotRun`, or what :func:`streaming.jars.resolve_jars` raises, when it cannot start or ends by itself.
    """
    with _stop_signals() as signals, ExitStack() as stack:
        query = start(options, stack, report)
        signals.from_now_on_wait_for_the_batch()
        _run_to_the_end(query, signals, options, report)


def start(
    options: JobOptions, stack: ExitStack, report: Report, *, jvm_end_limit_seconds: float = JVM_END_LIMIT_SECONDS
) -> StreamingQuery:
    """Start the job, with topics, a session and all else that it needs, which end with ``stack``.

    Raises what :func:`run_job` raises. The JVM is killed when its orderly end takes longer than the limit.
    """
    partitions = ensure_topics(options.librdkafka_config, options.topics, options.layout)
    jars = resolve_jars(report)
    folder = local_path(options.checkpoint) if options.is_local else None
    inherited = () if folder is None else (stack.enter_context(held(folder)),)
    spark_conf = spark_settings(options, jars)
    session = spark_session(spark_conf, inherited=inherited, jvm_end_limit_seconds=jvm_end_limit_seconds)
    spark = stack.enter_context(session)
    if folder is not None:
        forget_hadoop_defaults(spark, spark_conf)
    report(f"python workers: {choose(options.python_worker, spark.version).why}")
    return start_query(spark, options, partitions, stack, report)


def start_query(
    spark: SparkSession, options: JobOptions, partitions: Partitions, stack: ExitStack, report: Report
) -> StreamingQuery:
    """Start the query on its checkpoint, with its metrics, which end with ``stack``."""
    topics = options.topics
    checkpoint = Checkpoint(spark, checkpoint_location(options))
    made_with = checkpoint.made_with()
    if made_with is None:
        state_partitions = options.state_partitions or DEFAULT_STATE_PARTITIONS
        state_store = options.state_store or DEFAULT_STATE_STORE
    else:
        state_partitions, state_store = check_against_checkpoint(made_with, options, partitions)
    for key, value in STATE_STORES[state_store].items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions))
    config = msgspec.structs.replace(
        options.protocol, requests_topic=topics.requests, requests_partitions=partitions.requests
    )
    metrics = Metrics()
    if options.metrics_port is not None:
        # Before the query starts: a port that is taken should end the job before it has done anything.
        report(f"metrics at port {stack.enter_context(served(metrics, options.metrics_port))}")
    starts = checkpoint.record_start(time.time_ns() // 1_000_000)
    settings = Settings(topics, partitions.responses, config, starts)
    query = coordinator_query(spark, options, settings, state_partitions).start()
    if options.metrics_port is not None:
        stack.enter_context(filled(metrics, query, options.librdkafka_config, topics.directory, partitions.directory))
    return query


def check_against_checkpoint(
    made_with: MadeWith, options: JobOptions, partitions: Partitions
) -> tuple[int, StateStore]:
    """State partitions and state store of a checkpoint; raises :class:`CannotRun` where it does not fit the rest."""
    for name, asked, found in (
        ("state-partitions", options.state_partitions, made_with.state_partitions),
        ("state-store", options.state_store, made_with.state_store),
    ):
        if asked not in (None, found):
            raise CannotRun(
                f"checkpoint {options.checkpoint} was made with {name} {found}, "
                f"the options say {asked}: it is fixed when a checkpoint is made"
            )
    if made_with.state_store is None:
        raise CannotRun(f"checkpoint {options.checkpoint} was made with a state store that this job does not use")
    known = made_with.request_partitions.get(options.topics.requests)
    if known is None:
        raise CannotRun(
            f"checkpoint {options.checkpoint} belongs to {', '.join(made_with.request_partitions)}, "
            f"not to {options.topics.requests}: give its topic-prefix, or another checkpoint"
        )
    if known > partitions.requests:
        raise CannotRun(
            f"checkpoint {options.checkpoint} knows {known} partitions of {options.topics.requests}, which has "
            f"{partitions.requests}: the topic was made anew; give a new checkpoint, or bring the topic back"
        )
    return made_with.state_partitions, made_with.state_store


def _run_to_the_end(query: StreamingQuery, signals: _Signals, options: JobOptions, report: Report) -> None:
    ready = False
    while query.isActive and not signals.stop.wait(POLL_SECONDS):
        if not ready and query.lastProgress is not None:
            ready = True
            report(_how_to_reach(options))
    if query.isActive:
        report("stopping after the batch in flight")
        finish(query)
    failure = query.exception()
    if failure is not None:
        raise CannotRun(f"the query failed: {_first_lines(failure)}")
    report("stopped")


def _how_to_reach(options: JobOptions) -> str:
    topics = options.topics
    return (
        f"ready: append requests to {topics.requests} and read answers from {topics.responses} "
        f"at {options.bootstrap_servers}"
    )


def _first_lines(failure: PySparkException) -> str:
    # Spark's message goes on with the query's plan, and has the stacks of all layers in between.
    message = str(failure).partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in message.splitlines()]
    return " | ".join([line for line in lines if line and not line.startswith("at ")][:LINES_OF_A_FAILURE])


def finish(query: StreamingQuery) -> None:
    """End the query between two batches.

    ``StreamingQuery.stop`` interrupts the batch in flight, which then runs again after the next start: harmless,
    but it delays every answer of it by a restart. Spark's own loop looks at this state after each batch, and
    there is no public way to set it. It also looks when a batch is planned and not yet begun, hence the wait for
    one that has begun. Should the last batch take too long, or this Spark keep its state elsewhere, the query is
    stopped as Spark does it.
    """
    with suppress(*JVM_IS_GONE, TypeError, PySparkException):
        execution: Any = query._jsq.streamingQuery()
        spark = SparkSession.active()
        jvm: Any = spark._jvm
        terminated = getattr(jvm.org.apache.spark.sql.execution.streaming.runtime, "TERMINATED$")
        _await_next_job(spark)
        execution.state().set(getattr(terminated, "MODULE$"))
        query.awaitTermination(int(LAST_BATCH_LIMIT_SECONDS))
    if query.isActive:
        query.stop()


def _await_next_job(spark: SparkSession) -> None:
    # One that runs already may end, and the next be planned, before Spark is told anything.
    tracker = spark.sparkContext.statusTracker()
    running = set(tracker.getActiveJobsIds())
    deadline = time.monotonic() + LAST_BATCH_LIMIT_SECONDS
    while running.issuperset(tracker.getActiveJobsIds()) and time.monotonic() < deadline:
        time.sleep(0.001)


@contextmanager
def _stop_signals() -> Iterator[_Signals]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signals = _Signals()
    signals.listen()
    try:
        with suppress(KeyboardInterrupt):
            yield signals
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
