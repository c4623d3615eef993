"""The two threads that feed the metrics: one counts completed batches, the other follows the directory topic."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from streaming.client.directory import GroupDirectory
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.job.monitoring.metrics import Metrics, Progress
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, progress_after

log = logging.getLogger(__name__)

PROGRESS_POLL_SECONDS = 0.5
"""Spark keeps the progress of the last 1,200 batches (``session.py``), which take much longer than this."""

CLIENT_ID = "group-coordinator-metrics"

BATCHES, DIRECTORY = "batches", "directory"
"""The names of the readers in the metrics."""


class _BatchCounter(threading.Thread):
    """Counts the batches that the query completes. An exception is logged and counted, and the thread goes on."""

    def __init__(self, metrics: Metrics, query: StreamingQuery) -> None:
        super().__init__(name="batch-counter", daemon=True)
        self._metrics = metrics
        self._query = query
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Count the batches completed so far, and end."""
        self._stopped.set()
        self.join()

    def run(self) -> None:
        try:
            while not self._stopped.wait(PROGRESS_POLL_SECONDS):
                self._count_new_batches()
            self._count_new_batches()
        except JVM_IS_GONE:
            # The job itself reports it and ends.
            log.debug("the JVM has ended")

    def _count_new_batches(self) -> None:
        new = progress_after(self._query, self._metrics.last_counted_batch)
        self._metrics.note_answer()
        for text in new:
            try:
                self._metrics.count_batch(msgspec.json.decode(text, type=Progress))
            except Exception:
                log.exception("the progress of a batch cannot be counted")
                self._metrics.count_reader_failure(BATCHES)


@contextmanager
def feeding_metrics(
    metrics: Metrics, query: StreamingQuery, config: LibrdkafkaConfig, directory_topic: str
) -> Iterator[None]:
    """Keep the metrics up to date while the query runs; at the end, count the batches completed since the last poll.

    ``config`` is librdkafka's, with ``bootstrap.servers``.
    """
    counter = _BatchCounter(metrics, query)
    failed = partial(metrics.count_reader_failure, DIRECTORY)
    directory = GroupDirectory(str(config["bootstrap.servers"]), directory_topic, CLIENT_ID, config, failed)
    metrics.add_reader(BATCHES, counter.is_alive)
    metrics.add_reader(DIRECTORY, directory.is_alive)
    metrics.groups.entries = directory.entries
    metrics.unreadable_directory_records.set_function(directory.unreadable)
    counter.start()
    directory.start()
    try:
        yield
    finally:
        counter.stop()
        directory.close()
