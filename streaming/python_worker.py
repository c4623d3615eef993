"""Which of two Python workers runs the operator: the Arrow-native one, or pyspark's own.

Both give the same bytes and can take turns on one checkpoint. The Arrow-native one replaces parts of pyspark that are
nobody's interface, so it steps aside, by itself, for any pyspark but the one that it was made for.
"""

from typing import Literal, NamedTuple

PythonWorker = Literal["arrow", "stock"]

ARROW: PythonWorker = "arrow"
STOCK: PythonWorker = "stock"

MADE_FOR = "4.2.0"
"""The version of pyspark whose inside :mod:`streaming.arrow_worker` knows."""

VARIABLE = "GROUP_COORDINATOR_PYTHON_WORKER"
"""The environment variable by which the job tells its executors what was asked for."""


class Choice(NamedTuple):
    """The worker that runs, and why, for the log."""

    worker: PythonWorker
    why: str


def choose(asked: str, pyspark_version: str) -> Choice:
    """The worker for what was asked, on this pyspark."""
    if asked == STOCK:
        return Choice(STOCK, "pyspark's own worker, as asked for")
    if pyspark_version != MADE_FOR:
        return Choice(
            STOCK, f"pyspark's own worker: this is pyspark {pyspark_version}, the Arrow-native one is for {MADE_FOR}"
        )
    return Choice(ARROW, "the Arrow-native worker")
