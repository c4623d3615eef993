"""What a job does while it stands by, so that its first batches are as fast as its later ones."""

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.checkpoints.local_folder import checkpoint_location
from streaming.job.lifecycle.job_session import JobSession
from streaming.job.lifecycle.query_start import configure_state, group_settings
from streaming.job.query import warm_up_query
from streaming.job.senders import ANYONE
from streaming.job.session import NO_DATA_BATCHES
from streaming.job.spark_internals.checkpoint_layout.state_reader import state_frame
from streaming.job.spark_internals.internal_settings import FILE_MANAGER, local_checkpoint_settings
from streaming.job.spark_internals.java_objects import JVM_IS_GONE
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS, DEFAULT_STATE_STORE, StateStore

WARM_UP_SECONDS = 60.0
"""How long a job that stands by runs batches without requests. Until then, Java has compiled most of their code."""

GROUP_READS = 5
GROUP_READ_PAUSE_SECONDS = 3.0
"""How often a job that stands by reads the groups of the active one, and how long it waits before each time."""


class WarmUp:
    """Runs a query of the coordinator's shape: batch after batch for a minute, and from then on only for requests."""

    def __init__(self, session: JobSession, state_partitions: int) -> None:
        partitions = session.watch.found.partition_counts(session.options.topics)
        settings = group_settings(session.options, ANYONE, partitions, ())
        self._spark = session.spark
        self._metrics = session.metrics
        checkpoint = Path(tempfile.mkdtemp(prefix="warm-up-", dir=session.temporary))
        self._writer = warm_up_query(
            session.spark, session.options, settings, state_partitions, session.parts, checkpoint
        )
        self._warm_at: float | None = time.monotonic() + WARM_UP_SECONDS
        self._query = self._start(no_data_batches=True)

    def end_when_warm(self) -> None:
        """Let the query be idle while no requests come, if it has run for long enough. Call it often."""
        if self._warm_at is not None and time.monotonic() >= self._warm_at:
            self._warm_at = None
            self._metrics.note_warm_up()
            self._query.stop()
            self._query = self._start(no_data_batches=False)

    def stop(self) -> None:
        """End the query."""
        self._query.stop()

    def _start(self, *, no_data_batches: bool) -> StreamingQuery:
        # A query keeps the settings of its start; the coordinator's needs the session's own. This one's checkpoint is
        # local, wherever the coordinator's is.
        settings = {NO_DATA_BATCHES: str(no_data_batches), FILE_MANAGER: None, **local_checkpoint_settings()}
        with _set_meanwhile(self._spark, settings):
            return self._writer.start()


@contextmanager
def warming_up(session: JobSession) -> Iterator[WarmUp]:
    """Run a query of the coordinator's shape within the block, so that the coordinator's own is fast from its start.

    It ends after the block, on a thread: the coordinator's query need not wait for it.
    """
    spark, options = session.spark, session.options
    layout = session.checkpoint.layout()
    state_partitions = layout.state_partitions if layout else options.state_partitions or DEFAULT_STATE_PARTITIONS
    state_store = (layout.state_store if layout else options.state_store) or DEFAULT_STATE_STORE
    configure_state(spark, state_partitions, state_store)
    warm_up = WarmUp(session, state_partitions)
    has_ended = threading.Event()
    if state_store == "memory":
        threading.Thread(target=_read_groups, args=(session, state_store, has_ended), name="group-reads").start()
    try:
        yield warm_up
    finally:
        has_ended.set()
        threading.Thread(target=_end, args=(warm_up,), name="end-of-warm-up").start()


@contextmanager
def _set_meanwhile(spark: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Set these settings of a session, None for Spark's default, and return to its own ones after the block."""
    own = {key: spark.conf.get(key, None) for key in settings}
    _set(spark, settings)
    try:
        yield
    finally:
        _set(spark, own)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def _end(warm_up: WarmUp) -> None:
    # If the job ends meanwhile, so does its JVM.
    with suppress(*JVM_IS_GONE):
        warm_up.stop()


def _read_groups(session: JobSession, store: StateStore, has_ended: threading.Event) -> None:
    """Read the groups of the active job a few times: the memory store loads all of them before its first batch, too.

    So that Java has compiled this code, whose first run takes several times as long as its later ones.
    """
    for _ in range(GROUP_READS):
        if has_ended.wait(GROUP_READ_PAUSE_SECONDS):
            return
        # A checkpoint that cannot be read is reported by the start of the query.
        with suppress(*JVM_IS_GONE, PySparkException):
            batch = session.checkpoint.newest_complete_batch()
            if batch is not None:
                state_frame(session.spark, checkpoint_location(session.options.checkpoint), batch, store).count()
