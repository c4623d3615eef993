"""A signal that requests a stop while the main thread waits for it."""

import subprocess
import sys

import pytest

LIMIT_SECONDS = 20.0

WAITING = """
import os, signal, threading
from streaming.embedded.stop_signals import stop_requested

for _ in range(50):
    with stop_requested() as stop:
        threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGTERM)).start()
        while not stop.wait({seconds}):
            pass
"""


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_signal_ends_the_wait_wherever_it_interrupts_it(seconds: float) -> None:
    # With threading.Event, most of the processes would wait forever: its lock is held at every second moment.
    waiting = subprocess.run(
        [sys.executable, "-c", WAITING.format(seconds=seconds)], timeout=LIMIT_SECONDS, check=False
    )
    assert waiting.returncode == 0


def test_a_wait_without_a_signal_ends_with_its_limit() -> None:
    source = "from streaming.embedded.stop_signals import StopRequest; assert not StopRequest().wait(0.01)"
    subprocess.run([sys.executable, "-c", source], timeout=LIMIT_SECONDS, check=True)
