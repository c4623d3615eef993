"""The CPU time of this process and of those below it: the JVM and the Python workers."""

from contextlib import suppress

import psutil

REFRESH_LOOKS = 100
"""How often the CPU time is asked for until the processes are looked up again: to find them takes milliseconds."""


class ProcessorTime:
    """The CPU time of a process and its descendants, which are looked up at each ``refresh_looks``-th question.

    Not thread-safe. On a cluster, executors are not among them.
    """

    def __init__(self, process_id: int, refresh_looks: int = REFRESH_LOOKS) -> None:
        self._root = psutil.Process(process_id)
        self._refresh_looks = refresh_looks
        self._processes = [self._root]
        self._used: dict[int, float] = {}
        self._looks = 0

    def used(self) -> float:
        """What they have used until now (s); of one that has ended, what is known."""
        if self._looks % self._refresh_looks == 0:
            self._processes = [self._root, *self._root.children(recursive=True)]
        self._looks += 1
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._used[process.pid] = times.user + times.system
        return sum(self._used.values())
