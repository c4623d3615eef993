"""CPU time and memory of processes, from Linux's /proc."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from streaming.job.pace.processor_time import ProcessorTime
from tests.bench.figures import Memory
from tests.support.processes import command_line, executable, exists, parent, process_tree

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
JVM_MAIN_CLASS = b"org.apache.spark.deploy.SparkSubmit"


class CoordinatorProcesses(NamedTuple):
    """The processes of a coordinator by role."""

    driver: int
    jvm: int

    def by_role(self) -> dict[str, list[int]]:
        """Return process ids by role. The daemon from which Spark forks its Python workers counts as one of them.

        Other children of the JVM are left out: by default Hadoop forks short-lived processes to link files.
        """
        workers = [pid for pid in process_tree(self.jvm) if b"python" in executable(pid)]
        return {"driver JVM": [self.jvm], "driver Python": [self.driver], "Python workers": workers}


def find_coordinator(ancestor: int) -> CoordinatorProcesses:
    """Find the one coordinator among the descendants of a process. Raises LookupError for none or several."""
    named = [pid for pid in process_tree(ancestor) if JVM_MAIN_CLASS in command_line(pid)]
    # A process that the JVM has just forked has its command line for a moment.
    jvms = [pid for pid in named if exists(pid) and parent(pid) not in named]
    if len(jvms) != 1:
        raise LookupError(f"process {ancestor} has {len(jvms)} Spark drivers among its descendants, expected one")
    return CoordinatorProcesses(parent(jvms[0]), jvms[0])


def cpu_time(root: int) -> ProcessorTime:
    """The CPU time of a process and its descendants, to be asked for at the start and the end of a measurement.

    What a worker has used that ends in between is not lost: its daemon does not wait for it, so Linux adds its CPU time
    to no other process.
    """
    return ProcessorTime(root, refresh_looks=1)


def machine_cpu_seconds() -> float:
    """Return the CPU seconds of all processes and the kernel since boot."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, _first_line(PROC / "stat").split()[1:8])
    return (user + nice + system + sum(interrupts)) / TICKS_PER_SECOND


def memory(pids: Iterable[int]) -> Memory:
    """Return RSS and PSS of these processes together; those that have ended count as nothing."""
    sizes = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            sizes.append(_kilobytes(pid))
    rss, pss = (round(sum(size[key] for size in sizes) / 1024, 1) for key in ("Rss", "Pss"))
    return Memory(processes=len(sizes), rss_mib=rss, pss_mib=pss)


def _kilobytes(pid: int) -> dict[str, int]:
    lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    return {key.rstrip(":"): int(amount) for key, amount, *_ in map(str.split, lines)}


def _first_line(file: Path) -> str:
    with file.open() as lines:
        return lines.readline()
