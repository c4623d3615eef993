"""`group-coordinator` whose query tells what each batch took: `python -m tests.bench.watched run ...`.

Every finished batch is a line of JSON, Spark's own progress, in the file named by the environment variable. Nothing
else differs.
"""

import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming import cli, job
from streaming.job import Report
from streaming.options import JobOptions
from streaming.topics import Partitions

VARIABLE = "BENCH_PROGRESS_FILE"
POLL_SECONDS = 0.5


def start_query(
    spark: SparkSession, options: JobOptions, partitions: Partitions, stack: ExitStack, report: Report
) -> StreamingQuery:
    """Stands in for :func:`streaming.job.start_query`."""
    query = _start_query(spark, options, partitions, stack, report)
    ended = threading.Event()
    thread = threading.Thread(target=_write, args=(query, Path(os.environ[VARIABLE]), ended))
    thread.start()
    stack.callback(thread.join)
    stack.callback(ended.set)
    return query


_start_query = job.start_query


def _write(query: StreamingQuery, file: Path, ended: threading.Event) -> None:
    execution: Any = query._jsq
    last = -1
    with file.open("a") as out:
        while not ended.wait(POLL_SECONDS):
            if not query.isActive:
                return
            lines = []
            for progress in reversed(execution.recentProgress()):
                if progress.batchId() <= last:
                    break
                lines.append((progress.batchId(), progress.json()))
            for batch, line in reversed(lines):
                last = batch
                out.write(line + "\n")
            out.flush()


if __name__ == "__main__":
    with patch.object(job, "start_query", start_query):
        cli.main()
