"""How long threads have waited for a processor."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.job.monitoring.slow_batches.run_queue import REFRESH_LOOKS, RunQueue


@pytest.fixture
def child() -> Iterator[int]:
    """A process that takes the JVM's place below this one."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid


def add_thread(proc: Path, process_id: int, thread: int, name: str, waited_ns: int) -> Path:
    folder = proc / str(process_id) / "task" / str(thread)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "schedstat").write_text(f"1000 {waited_ns} 7\n")
    return folder


def test_the_threads_of_a_batch_count_and_no_others(tmp_path: Path, child: int) -> None:
    add_thread(tmp_path, child, 1, "stream executio", 250_000_000)
    add_thread(tmp_path, child, 2, "Executor task l", 1_000_000_000)
    add_thread(tmp_path, child, 3, "VM Thread", 5_000_000_000)
    assert RunQueue(os.getpid(), tmp_path).waited() == 1.25


def test_a_thread_that_has_ended_keeps_its_time_and_new_ones_are_found(tmp_path: Path, child: int) -> None:
    ended = add_thread(tmp_path, child, 1, "Executor task l", 1_000_000_000)
    queue = RunQueue(os.getpid(), tmp_path)
    assert queue.waited() == 1
    (ended / "schedstat").unlink()
    (ended / "comm").unlink()
    add_thread(tmp_path, child, 2, "Executor task l", 500_000_000)
    assert [queue.waited() for _ in range(REFRESH_LOOKS)][-1] == 1.5


def test_a_system_that_does_not_tell_has_no_time(tmp_path: Path) -> None:
    assert RunQueue(os.getpid(), tmp_path).waited() is None
