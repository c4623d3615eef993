"""CPU time and memory of processes, read from Linux's /proc."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import Memory

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
JVM_MAIN_CLASS = b"org.apache.spark.deploy.SparkSubmit"


class CoordinatorProcesses(NamedTuple):
    """The processes of a coordinator by role."""

    driver: int
    jvm: int

    def by_role(self) -> dict[str, list[int]]:
        """Process ids. Spark forks its Python workers from a daemon, which counts among them.

        By default Hadoop starts processes of its own for moments, to link files and to set permissions.
        """
        workers = [pid for pid in tree(self.jvm) if b"python" in _command(pid).partition(b"\0")[0]]
        return {"driver JVM": [self.jvm], "driver Python": [self.driver], "Python workers": workers}


def find_coordinator(ancestor: int) -> CoordinatorProcesses:
    """The coordinator among the descendants of a process. LookupError when there is not exactly one."""
    parents = _parents()
    jvms = [pid for pid in tree(ancestor) if JVM_MAIN_CLASS in _command(pid)]
    if len(jvms) != 1:
        raise LookupError(f"process {ancestor} has {len(jvms)} Spark drivers below it, not one")
    return CoordinatorProcesses(parents[jvms[0]], jvms[0])


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    parents = _parents()
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_seconds(root: int) -> float:
    """What a process and its descendants have used so far, those that have ended included."""
    ticks = 0
    for pid in tree(root):
        with suppress(FileNotFoundError, ProcessLookupError):
            ticks += sum(map(int, _stat(pid)[11:15]))
    return ticks / TICKS_PER_SECOND


def machine_cpu_seconds() -> float:
    """What all processes and the kernel have used so far."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, _first_line(PROC / "stat").split()[1:8])
    return (user + nice + system + sum(interrupts)) / TICKS_PER_SECOND


def memory(pids: Iterable[int]) -> Memory:
    """RSS and PSS of these processes together, less those that have ended."""
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


def _parents() -> dict[int, int]:
    parents = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                parents[int(folder.name)] = int(_stat(int(folder.name))[1])
    return parents


def _stat(pid: int) -> list[str]:
    """The fields from the third (the state) on; the second, a name in brackets, may hold anything."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _command(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
