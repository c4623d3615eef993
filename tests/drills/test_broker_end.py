"""The Kafka broker of a demo or a drill ends by itself: the command says so in one line and ends."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.coordinator_process import SHORT_LIVED_JVMS
from tests.support.processes import Process, command_line, descendants, exists
from tests.support.waiting import wait_until

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("words", [("demo",), ("drill", "kill", "-o", "reports")], ids=" ".join)
def test_the_end_of_the_broker_ends_the_command(words: tuple[str, ...], tmp_path: Path) -> None:
    words = tuple(str(tmp_path / word) if word == "reports" else word for word in words)
    environment = {**SHORT_LIVED_JVMS, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "streaming.cli", *words, "--json"]
    with Process(" ".join(words), command, environment=environment) as process:
        process.start()
        process.await_line("that its broker is ready", lambda line: line.endswith("the broker is ready"))
        started = descendants(process.pid)
        os.kill([pid for pid in started if b"kafka.Kafka" in command_line(pid)][-1], signal.SIGKILL)
        assert process.wait() == 1
        errors = [line for line in process.output if "error" in line or "Traceback" in line]
        assert errors == ["error: the Kafka broker has ended: killed by SIGKILL"]
        wait_until(lambda: not any(map(exists, started)), "the end of all processes")
    assert list(tmp_path.glob("group-coordinator-*")) == []
