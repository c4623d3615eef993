"""A coordinator whose clients are silent: its CPU time, batches and files; and what a batch costs that does nothing."""

import statistics
import time
from pathlib import Path

from streaming.job.group_batch.steps import DEADLINE_CHECK
from tests.bench.figures import Idle, Scale
from tests.bench.systems.coordinators import Coordinator
from tests.bench.usage import cpu_time
from tests.support.kafka_io import append
from tests.support.waiting import wait_until

PAUSE_SECONDS = 0.005


def idle(coordinator: Coordinator, scale: Scale, groups: int) -> Idle:
    """Send nothing, and measure the CPU time, the batches and the files of the checkpoint."""
    time.sleep(scale.settling_seconds)
    files, batches = _files(coordinator.checkpoint), _newest(coordinator, "offsets")
    cpu = cpu_time(coordinator.processes.driver)
    used = cpu.used()
    time.sleep(scale.idle_seconds)
    cores = (cpu.used() - used) / scale.idle_seconds
    return Idle(
        groups=groups,
        seconds=scale.idle_seconds,
        coordinator_cores=round(cores, 4),
        batches=_newest(coordinator, "offsets") - batches,
        files=len(_files(coordinator.checkpoint) - files),
        batch_ms=round(statistics.median(empty_batches(coordinator, scale.empty_batches)), 1),
    )


def empty_batches(coordinator: Coordinator, count: int) -> list[float]:
    """Make the coordinator run batches that find nothing to do; the ms from the plan of each to its end."""
    durations = []
    for _ in range(count):
        newest = _newest(coordinator, "commits")
        append(coordinator.bootstrap_servers, coordinator.topics.requests, (None, DEADLINE_CHECK))
        wait_until(
            lambda newest=newest: _newest(coordinator, "commits") > newest,  # type: ignore[misc]
            "an empty batch",
            pause=PAUSE_SECONDS,
        )
        batch = str(_newest(coordinator, "commits"))
        planned, ended = ((coordinator.checkpoint / log / batch).stat().st_mtime for log in ("offsets", "commits"))
        durations.append(1000 * (ended - planned))
    return durations


def _newest(coordinator: Coordinator, log: str) -> int:
    """The newest batch in a log of the checkpoint."""
    return max(int(file.name) for file in (coordinator.checkpoint / log).iterdir() if file.name.isdigit())


def _files(folder: Path) -> set[tuple[str, int]]:
    """The names of all files, and when they were written."""
    found = set()
    for file in folder.rglob("*"):
        try:
            if file.is_file():
                found.add((str(file), file.stat().st_mtime_ns))
        except FileNotFoundError:  # Spark has removed it meanwhile.
            continue
    return found
