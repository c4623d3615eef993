"""Ctrl-C: who asks whether it was pressed need not wait for the thread that watches for it."""

import subprocess
import sys

PRESSED_BEFORE_THE_THREAD_HAS_RUN = """
import os, signal, threading, time
from streaming.embedded import interruption

threading.Thread.start = lambda thread: None
interruption.watch_for_interrupts()
try:
    with interruption.stopping_in_order():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
except KeyboardInterrupt:
    os._exit(interruption.exit_code())
"""


def test_a_service_that_stops_sooner_than_the_thread_runs_ends_with_the_code_of_ctrl_c() -> None:
    ended = subprocess.run([sys.executable, "-c", PRESSED_BEFORE_THE_THREAD_HAS_RUN], timeout=60, check=False)
    assert ended.returncode == 130
