"""A file with Spark's report of each completed batch, for measurements."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from streaming.job.monitoring.backlog import BatchSize
from streaming.job.spark_internals.java_objects import JVM_IS_GONE, progress_after

POLL_SECONDS = 0.5


@contextmanager
def recording_progress(query: StreamingQuery, file: Path) -> Iterator[None]:
    """Append the report of each batch to ``file`` as a line of JSON while the block runs, of the last ones at its end.

    Raises:
        OSError: the file cannot be opened.
    """
    has_ended = threading.Event()
    with file.open("a") as out:
        thread = threading.Thread(target=_record, args=(query, out, has_ended), name="progress-file")
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()


def _record(query: StreamingQuery, out: TextIO, has_ended: threading.Event) -> None:
    last = -1
    # If the job ends meanwhile, so does its JVM.
    with suppress(*JVM_IS_GONE):
        is_last = False
        while not is_last:
            is_last = has_ended.wait(POLL_SECONDS)
            for line in progress_after(query, last):
                last = msgspec.json.decode(line, type=BatchSize).batch_id
                out.write(line + "\n")
            out.flush()
