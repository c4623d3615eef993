"""Which Python worker runs the operator: the Arrow-native one, or pyspark's own.

Both give the same bytes and can alternate on one checkpoint.
"""

from typing import Literal, NamedTuple

PythonWorker = Literal["arrow", "stock"]

ARROW: PythonWorker = "arrow"
STOCK: PythonWorker = "stock"

VARIABLE = "GROUP_COORDINATOR_PYTHON_WORKER"
"""The environment variable with which the driver passes the choice to its executors."""


class Choice(NamedTuple):
    """The worker that runs, and why; ``why`` is a phrase for the log."""

    worker: PythonWorker
    why: str


def choose(requested: str, pyspark_version: str) -> Choice:
    """The worker for the option ``python-worker`` on this version of pyspark."""
    # The options name the workers, and are read where pyspark is not installed too.
    from streaming.job.spark_internals.registry import ARROW_WORKER, WORKER_DAEMON, reason_to_leave_out

    if requested == STOCK:
        return Choice(STOCK, "pyspark's own worker, as the options say")
    for internal in (WORKER_DAEMON, ARROW_WORKER):
        reason = reason_to_leave_out(internal, version=pyspark_version)
        if reason is not None:
            why = f"pyspark's own worker, because {internal.name} is left out on pyspark {pyspark_version}: {reason}"
            return Choice(STOCK, why)
    return Choice(ARROW, "the Arrow-native worker")
