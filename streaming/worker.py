"""The process that Spark forks its Python workers from (``spark.python.daemon.module``).

pyspark's own imports nothing and lets every worker import for itself. Worse, a worker runs a full garbage
collection after every task, over every object that pandas, pyarrow and the logic brought along. Here they
are imported once, before the fork, and then frozen: the collector does not look at them again. That collection
is enough for the Arrow-native worker, which makes no cycles: others, in the middle of a task, would look at
everything that the task has put together so far, a third of its time.

pyspark imports late because a thread that was started before a fork is missing after it. These imports start
none; a test watches over that.
"""

import gc
import os
import socket
import sys

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker
from pyspark import daemon

import streaming.operator  # noqa: F401
from streaming.python_worker import ARROW, VARIABLE, choose

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """pyspark's, but silent when the job has ended: nobody is left to be told, and it would print a traceback."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def install_chosen() -> None:
    """Make this process's workers the ones that the job asked for, as far as this pyspark allows."""
    asked = os.environ.get(VARIABLE, ARROW)
    choice = choose(asked, pyspark.__version__)
    if choice.worker == ARROW:
        # Only now: another pyspark may not even have what it imports.
        from streaming import arrow_worker

        arrow_worker.install()
        gc.disable()
    elif asked == ARROW:
        print(f"python workers: {choice.why}", file=sys.stderr)


if __name__ == "__main__":
    daemon.worker = worker
    install_chosen()
    gc.collect()
    gc.freeze()
    daemon.manager()
