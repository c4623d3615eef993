"""A signal that requests a stop while the main thread waits for it."""

import signal
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


LATE = """
import os, signal, sys, time
from streaming.embedded.stop_signals import ending_late_stop, stop_requested

def note():
    print("signal", flush=True)

signal.signal(signal.SIGUSR1, lambda *_: None)
with stop_requested(), ending_late_stop(0.3, lambda number: os._exit(number), note):
    os.kill(os.getpid(), signal.{name})
    time.sleep({seconds})
"""
"""The main thread handles the signal, and goes on with what does not end."""


@pytest.mark.parametrize(
    ("name", "seconds", "code", "output"),
    [
        pytest.param("SIGTERM", 3600, signal.SIGTERM, "signal\n", id="a stop that would last an hour"),
        pytest.param("SIGINT", 3600, signal.SIGINT, "signal\n", id="the same after Ctrl-C"),
        pytest.param("SIGUSR1", 3600, signal.SIGUSR1, "signal\n", id="the same after the end of a child"),
        pytest.param("SIGTERM", 0, 0, "", id="a stop in time"),
        pytest.param("SIGWINCH", 1, 0, "", id="another signal"),
    ],
)
def test_a_stop_that_lasts_too_long_is_ended(name: str, seconds: float, code: int, output: str) -> None:
    command = [sys.executable, "-c", LATE.format(name=name, seconds=seconds)]
    ended = subprocess.run(command, timeout=LIMIT_SECONDS, check=False, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    if output:
        assert ended.stdout == output


def test_a_wait_without_a_signal_ends_with_its_limit() -> None:
    source = "from streaming.embedded.stop_signals import StopRequest; assert not StopRequest().wait(0.01)"
    subprocess.run([sys.executable, "-c", source], timeout=LIMIT_SECONDS, check=True)
