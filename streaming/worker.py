"""The process that Spark forks its Python workers from (``spark.python.daemon.module``).

pyspark's own imports nothing and lets every worker import for itself. Worse, a worker runs a full garbage
collection after every task, over every object that pandas, pyarrow and the logic brought along. Here they
are imported once, before the fork, and then frozen: the collector does not look at them again.

pyspark imports late because a thread that was started before a fork is missing after it. These imports start
none; a test watches over that.
"""

import gc
import socket

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark import daemon

import streaming.operator  # noqa: F401

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """pyspark's, but silent when the job has ended: nobody is left to be told, and it would print a traceback."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    gc.collect()
    gc.freeze()
    daemon.manager()
