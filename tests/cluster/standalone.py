"""A standalone Spark cluster on loopback: a master and workers, each a process of its own."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from streaming.embedded.jars import find_java
from streaming.embedded.ports import free_address
from streaming.job.executors.packing import python_name
from tests.support.coordinator_process import linked_spark_home
from tests.support.processes import Process

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"

DAEMON_HEAP = "256m"


class StandaloneCluster(ExitStack):
    """A master, and workers of one core each, in an environment without the project: a ``python3.x``, and no packages.

    Ends with the block. ``folder`` gets the workers' files.
    """

    def __init__(self, folder: Path, workers: int) -> None:
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
        self._command = [
            "/usr/bin/env",
            "-i",
            f"PATH={programs}:{os.defpath}",
            f"SPARK_HOME={home}",
            f"SPARK_DAEMON_MEMORY={DAEMON_HEAP}",
            str(home / "bin" / "spark-class"),
        ]
        self.master = self._process("master", MASTER, "--host", host, "--port", port)
        self.workers = [self._worker(number) for number in range(workers)]

    def __enter__(self) -> Self:
        super().__enter__()
        for process in (self.master, *self.workers):
            self.push(process)
        self.master.start()
        self.master.await_line("that it is ready", lambda line: "I have been elected leader" in line)
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.await_line("its master", lambda line: "Successfully registered with master" in line)
        return self

    def _worker(self, number: int) -> Process:
        folder = self._folder / f"worker-{number}"
        resources = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
        return self._process(f"worker {number}", WORKER, "--host", "127.0.0.1", *resources, self.master_url)

    def _process(self, name: str, main_class: str, *arguments: str) -> Process:
        return Process(name, [*self._command, main_class, "--webui-port", "0", *arguments])
