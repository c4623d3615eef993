"""`group-coordinator` that records the progress of each batch: `python -m tests.bench.systems.watched run ...`.

Spark's progress report of every completed batch is appended, as a line of JSON, to the file that the environment
variable names. Nothing else differs from the job as it ships.
"""

import json
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from pyspark.sql.streaming.query import StreamingQuery

from streaming.cli import main as cli
from streaming.job.lifecycle import query_start, run
from streaming.job.lifecycle.job_session import JobSession, Report
from streaming.job.spark_internals.java_objects import progress_after
from streaming.job.topics.layout import Partitions

VARIABLE = "BENCH_PROGRESS_FILE"
POLL_SECONDS = 0.5


def start_query(
    session: JobSession, partitions: Partitions, stack: ExitStack, report: Report, *, after_rival: bool = False
) -> StreamingQuery:
    """Start the query as :func:`streaming.job.lifecycle.query_start.start_query` does, and record its progress."""
    query = _start_query(session, partitions, stack, report, after_rival=after_rival)
    ended = threading.Event()
    thread = threading.Thread(target=_record_progress, args=(query, Path(os.environ[VARIABLE]), ended))
    thread.start()
    stack.callback(thread.join)
    stack.callback(ended.set)
    return query


_start_query = query_start.start_query


def _record_progress(query: StreamingQuery, file: Path, ended: threading.Event) -> None:
    last = -1
    with file.open("a") as out:
        while not ended.wait(POLL_SECONDS):
            for line in progress_after(query, last):
                last = json.loads(line)["batchId"]
                out.write(line + "\n")
            out.flush()


if __name__ == "__main__":
    with patch.object(run, "start_query", start_query):
        cli.main()
