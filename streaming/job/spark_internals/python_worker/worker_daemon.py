"""The process from which Spark forks its Python workers (``spark.python.daemon.module``).

pyspark's own daemon imports nothing, so each worker imports for itself. A worker also runs a full garbage collection
after every task, over all objects of pandas, pyarrow and the logic. This daemon imports them once, before the fork, and
freezes them: the collector skips frozen objects.

The Arrow-native worker makes no cycles, so the collection after each task is enough for it. Further collections within
a task would visit everything that the task has collected so far: a third of its time.

pyspark imports late because a fork does not copy the other threads of a process. The imports here start no thread; a
test checks that.
"""

import gc
import os
import socket

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker
from pyspark import daemon

import streaming.job.operator  # noqa: F401
from streaming.contract.output.plain import print_plain
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, VARIABLE, choose

_pyspark_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run pyspark's worker; print no traceback when the job has ended and closed the socket."""
    try:
        return _pyspark_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def install_chosen_worker() -> None:
    """Prepare this process for the worker that the job has requested, as far as this pyspark allows."""
    requested = os.environ.get(VARIABLE, ARROW)
    choice = choose(requested, pyspark.__version__)
    if choice.worker == ARROW:
        # Not at the top: another pyspark may lack names that it imports.
        from streaming.job.spark_internals.python_worker import arrow_worker

        arrow_worker.install()
        gc.disable()
    elif requested == ARROW:
        print_plain(f"Python worker: {choice.why}", to_stderr=True)


if __name__ == "__main__":
    daemon.worker = worker
    install_chosen_worker()
    gc.collect()
    gc.freeze()
    daemon.manager()
