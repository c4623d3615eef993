"""The settings with which executors on other hosts get the job's code, packages and Java options."""

import os
from collections.abc import Mapping
from pathlib import Path

from streaming.embedded.jars import Report
from streaming.job.executors.packing import packed_code, packed_packages, python_name
from streaming.job.session import (
    DEFAULT_JVM_FLAGS,
    OUT_OF_MEMORY,
    PYTHON,
    PYTHON_VARIABLE,
    SMALL_NETWORK_BUFFERS,
)

PACKAGES_FOLDER, CODE_FOLDER = "coordinator-packages", "coordinator-code"
"""The folders of the archives, in the working folder of an executor."""

ARCHIVES = "spark.archives"

RESOURCE_MANAGER_WAIT_MS = 60_000

SPARE = 1
"""Executors beside those that a batch needs: when one dies, a new one has to start Java, and to unpack and import the
packages first. A spare one has done all that (:mod:`streaming.job.executors.warming`)."""

SOCKET_FOLDER = "/tmp"  # noqa: S108 - a name of Spark's own, with a random part, in a folder that every host has


def have_their_own(settings: Mapping[str, str]) -> bool:
    """Whether executors have the job's packages already: in an image, or by archives of the user's.

    Whoever chooses the executors' Python, or archives, sees to what is in them.
    """
    return PYTHON_VARIABLE in os.environ or PYTHON in settings or ARCHIVES in settings


def executor_settings(settings: Mapping[str, str], folder: Path, report: Report, *, cores: int) -> dict[str, str]:
    """The settings of a job on a cluster: these, and what its executors need beside them; the user's own win.

    ``folder`` gets an archive, which has to last as long as the job. ``cores``: as many as a batch has tasks at once; a
    further one goes on in place of an executor that has died.
    """
    added = {
        # The path of a socket has at most 107 bytes, and a container's temporary folder on YARN is longer than that.
        "spark.python.unix.domain.socket.dir": SOCKET_FOLDER,
        # YARN's client would try for a quarter of an hour, without a word.
        "spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": str(RESOURCE_MANAGER_WAIT_MS),
        # A standalone master gives the first application every core, and a standby none.
        "spark.cores.max": str(cores + SPARE),
        "spark.executor.cores": "1",
        # A task waits for the executor that has its state, by default for 3 s. Of two states that an executor has, the
        # second would stay there for as long as a batch takes less, whatever executors have joined since.
        "spark.locality.wait": "500ms",
        # On YARN and Kubernetes.
        "spark.executor.instances": str(cores + SPARE),
        "spark.executor.defaultJavaOptions": " ".join(DEFAULT_JVM_FLAGS),
        "spark.executor.extraJavaOptions": " ".join((OUT_OF_MEMORY, SMALL_NETWORK_BUFFERS)),
    }
    if not settings["spark.master"].startswith("local") and not have_their_own(settings):
        packages, code = packed_packages(report, folder), packed_code(folder)
        added[ARCHIVES] = f"{packages}#{PACKAGES_FOLDER},{code}#{CODE_FOLDER}"
        added["spark.executorEnv.PYTHONPATH"] = f"{CODE_FOLDER}:{PACKAGES_FOLDER}"
        added[PYTHON] = python_name()
    return {**added, **settings}
