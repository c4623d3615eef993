"""A standalone Spark cluster on loopback: a master and workers, each a process of its own."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from streaming.embedded.jars import find_java
from streaming.embedded.ports import free_address
from streaming.job.executors.packing import python_name
from tests.support.coordinator_process import linked_spark_home
from tests.support.processes import Process, descendants, names

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"

EXECUTOR = b"CoarseGrainedExecutorBackend"

DAEMON_HEAP = "256m"

COVERED = 'mount -t tmpfs none "$0" && exec "$@"'
"""Runs a command that finds an empty folder in place of the first argument."""


def elsewhere(unshared: Path) -> list[str]:
    """The words before a command for which this folder is another one, as on another host. Only root can make one."""
    return ["unshare", "--mount", "sh", "-c", COVERED, str(unshared)]


class StandaloneCluster(ExitStack):
    """A master and workers, in an environment without the project: a ``python3.x``, and no packages.

    Ends with the block. ``folder`` gets the workers' files. ``cores``: those of each worker. ``within``: the words
    before the command of a worker, by its number, such as those of :func:`elsewhere`.
    """

    def __init__(
        self, folder: Path, workers: int, *, cores: int = 2, within: Callable[[int], list[str]] = lambda _: []
    ) -> None:
        super().__init__()
        self._folder = folder
        host, port = free_address().split(":")
        self.master_url = f"spark://{host}:{port}"
        programs = folder / "bin"
        programs.mkdir(parents=True)
        base = Path(sys.base_prefix, "bin", python_name())
        (programs / python_name()).symlink_to(base)
        (programs / "java").symlink_to(find_java())
        home = linked_spark_home(folder)
        self._cores = cores
        self._within = within
        self._command = [
            "/usr/bin/env",
            "-i",
            f"PATH={programs}:{os.defpath}",
            f"SPARK_HOME={home}",
            f"SPARK_DAEMON_MEMORY={DAEMON_HEAP}",
            str(home / "bin" / "spark-class"),
        ]
        self.master = Process("master", self._main(MASTER, "--host", host, "--port", port))
        self.workers = [self._worker(number) for number in range(workers)]

    def __enter__(self) -> Self:
        super().__enter__()
        for process in (self.master, *self.workers):
            self.push(process)
        self.master.start()
        self.master.await_line("that it is ready", lambda line: "I have been elected leader" in line)
        self.start_workers(*self.workers)
        return self

    def start_workers(self, *workers: Process) -> None:
        """Start workers, and wait until they have joined."""
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.await_line("its master", lambda line: "Successfully registered with master" in line)

    def executors(self, *workers: Process) -> list[int]:
        """The process ids of the executors of these workers; of all without any."""
        running = [worker for worker in workers or self.workers if worker.is_running]
        return [pid for worker in running for pid in descendants(worker.pid) if names(pid, EXECUTOR)]

    def _worker(self, number: int) -> Process:
        folder = self._folder / f"worker-{number}"
        resources = ("--cores", str(self._cores), "--memory", "1g", "--work-dir", str(folder))
        command = self._main(WORKER, "--host", "127.0.0.1", *resources, self.master_url)
        return Process(f"worker {number}", [*self._within(number), *command])

    def _main(self, main_class: str, *arguments: str) -> list[str]:
        return [*self._command, main_class, "--webui-port", "0", *arguments]
