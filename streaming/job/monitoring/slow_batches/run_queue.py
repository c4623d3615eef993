"""How long the threads that a batch waits for have waited for a processor, from Linux's scheduler."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

THREADS = ("stream executio", "Executor task", "dag-scheduler-e", "kafka-producer-")
"""How the names of the JVM's threads begin that plan a batch, run its tasks and send its answers. Linux keeps 15
characters of a name."""

REFRESH_LOOKS = 20
"""How often the times are read until the threads are looked up again: to find them takes milliseconds."""


class RunQueue:
    """The threads of a job: of the JVM that its process has started, and of the Python workers below it.

    Not thread-safe. Several threads may wait at the same time, and each counts.
    """

    def __init__(self, process_id: int, proc: Path) -> None:
        self._root = psutil.Process(process_id)
        self._proc = proc
        self._files: list[Path] = []
        self._waited: dict[Path, int] = {}
        self._looks = 0

    def waited(self) -> float | None:
        """How long they have waited until now (s), those that have ended too; None if the system does not tell."""
        if self._looks % REFRESH_LOOKS == 0:
            self._files = list(self._found())
        self._looks += 1
        for file in self._files:
            # A thread may end meanwhile.
            with suppress(OSError, ValueError, IndexError):
                self._waited[file] = int(file.read_text().split()[1])
        return sum(self._waited.values()) / 1e9 if self._waited else None

    def _found(self) -> Iterator[Path]:
        with suppress(psutil.Error):
            for child in self._root.children():
                yield from self._of_jvm(child.pid)
                for worker in child.children(recursive=True):
                    yield self._proc / str(worker.pid) / "schedstat"

    def _of_jvm(self, process_id: int) -> Iterator[Path]:
        for thread in (self._proc / str(process_id) / "task").glob("*"):
            with suppress(OSError):
                if (thread / "comm").read_text().startswith(THREADS):
                    yield thread / "schedstat"
