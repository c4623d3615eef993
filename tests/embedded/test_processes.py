"""Commands that run as processes of their own."""

import signal
import subprocess
import sys

from tests.support.processes import Process, is_running
from tests.support.waiting import wait_until

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


def test_a_command_ends_with_a_test_run_that_is_killed() -> None:
    run = (
        "import signal\n"
        "from tests.support.processes import Process\n"
        f"process = Process('sleeper', {SLEEP!r})\n"
        "process.start()\n"
        "print(process.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", run], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        assert is_running(pid)
        killed.kill()
    wait_until(lambda: not is_running(pid), "the command ends")


def test_a_command_is_stopped_killed_and_started_again() -> None:
    process = Process("sleeper", SLEEP)
    process.start()
    first = process.pid
    assert process.stop() == 128 + signal.SIGTERM
    assert not is_running(first)
    process.start()
    second = process.pid
    assert second != first
    process.kill()
    assert not process.is_running
    assert not is_running(second)


def test_the_output_of_a_command_and_its_exit_code_are_kept() -> None:
    write = "import sys; print('to stdout', flush=True); print('to stderr', file=sys.stderr); sys.exit(3)"
    process = Process("writer", [sys.executable, "-c", write])
    process.start()
    process.await_line("its last line", lambda line: line == "to stderr")
    assert process.wait() == 3
    assert process.output == ["to stdout", "to stderr"]
