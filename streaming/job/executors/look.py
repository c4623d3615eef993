"""What a task sees of the executor on which it runs. Executors import this module: it is small."""

import os
import platform
import socket
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pyarrow

from streaming.job.spark_internals.python_worker.worker_choice import ARROW, STOCK, PythonWorker

PACKAGES = ("pyarrow", "pandas", "msgspec", "confluent-kafka")
"""The packages whose versions are reported: those that the coordinator's tasks import."""


class Sight(NamedTuple):
    """An executor, as its Python worker sees it."""

    host: str
    folder: str
    """The executor's working folder, in which its archives are."""
    python: str
    packages: tuple[str, ...]
    """Name and version of each of :data:`PACKAGES`."""
    time_seconds: float
    sees_file: bool
    """Whether the file of :func:`look` exists there; true without one."""
    worker: PythonWorker
    """The Python worker that runs there."""


def look(file: str | None) -> Sight:
    """Import what the coordinator's tasks import, and look for a file that the driver has written."""
    import streaming.job.operator  # noqa: F401

    packages = tuple(f"{name} {metadata.version(name)}" for name in PACKAGES)
    sees_file = file is None or Path(file).exists()
    # Only the job's own daemon imports it, when it installs the worker.
    worker = ARROW if "streaming.job.spark_internals.python_worker.arrow_worker" in sys.modules else STOCK
    return Sight(socket.gethostname(), os.getcwd(), platform.python_version(), packages, time.time(), sees_file, worker)


def folder_with_operator(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """A row with the executor's working folder, from a process with all that the coordinator's tasks import."""
    import streaming.job.operator  # noqa: F401

    for _ in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"folder": [os.getcwd()]})
