"""The CPU time of a process and its descendants, of which some end."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from streaming.job.pace.processor_time import ProcessorTime
from tests.support.waiting import LIMIT_SECONDS, wait_until

BUSY = "while True: pass"

# As pyspark's daemon does with its workers: Linux adds what they have used to no other process.
DAEMON = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", {BUSY!r}])
sys.stdin.read()
"""


@contextmanager
def daemon() -> Iterator[psutil.Process]:
    """A process with one worker that keeps a core busy."""
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdin=subprocess.PIPE) as started:
        process = psutil.Process(started.pid)
        try:
            wait_until(lambda: bool(process.children()), "the worker")
            yield process
        finally:
            for each in [*process.children(recursive=True), process]:
                each.kill()


def test_what_a_worker_has_used_counts_after_its_end() -> None:
    with daemon() as process:
        (worker,) = process.children()
        cpu = ProcessorTime(process.pid, refresh_looks=1)
        wait_until(lambda: cpu.used() > 0.3, "the worker's CPU time")
        before = cpu.used()
        worker.kill()
        psutil.wait_procs([worker], timeout=LIMIT_SECONDS)
        assert not process.children()
        assert cpu.used() >= before


def test_a_process_that_begins_later_counts_when_they_are_looked_up_again() -> None:
    own = psutil.Process()
    cpu = ProcessorTime(own.pid, refresh_looks=2)
    cpu.used()
    with daemon() as process:
        (worker,) = process.children()

        def has_counted() -> bool:
            times = own.cpu_times()
            return cpu.used() > times.user + times.system + 0.3

        wait_until(has_counted, "the worker's CPU time", pause=0.05)
        assert worker.is_running()
