"""The coordinator as users run it: a process of its own, to talk to, to stop and to kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from streaming.topics import TopicNames

READY_LIMIT_SECONDS = 120.0
STOP_LIMIT_SECONDS = 120.0

QUICK = {
    "master": "local[2]",
    "driver-memory": "512m",
    "request-partitions": 2,
    "response-partitions": 2,
    "state-partitions": 1,
    "trigger-interval-ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    # A JVM that lives for seconds does not get back what the second compiler costs: a tenth of the tests' time.
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Options that suit a small machine on which a test waits."""


class CoordinatorProcess:
    """``group-coordinator run``, on topics of its own unless ``options`` say otherwise.

    ``folder`` keeps its checkpoint, its options and what it says (``said``). Starting it again after :meth:`kill` or
    :meth:`stop` continues from the checkpoint.
    """

    def __init__(self, bootstrap_servers: str, folder: Path, options: Mapping[str, object] | None = None) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.checkpoint = folder / "checkpoint"
        self._options_file = folder / "options.toml"
        self.options: dict[str, object] = {
            "bootstrap-servers": bootstrap_servers,
            "checkpoint": str(self.checkpoint),
            "topic-prefix": f"test-{uuid.uuid4().hex[:8]}-",
            **QUICK,
            **(options or {}),
        }
        self.said: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._ready = threading.Event()

    @property
    def topics(self) -> TopicNames:
        """The names of its topics."""
        return TopicNames(str(self.options["topic-prefix"]))

    @property
    def pid(self) -> int:
        """The process id of the Python process."""
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        """Start it without waiting."""
        lines = [f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in self.options.items()]
        self._options_file.parent.mkdir(parents=True, exist_ok=True)
        self._options_file.write_text("".join(lines))
        self._ready.clear()
        self.said.clear()
        command = [sys.executable, "-m", "streaming.cli", "run", "--json", "--config", str(self._options_file)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._process = process
        self._readers = [threading.Thread(target=self._read, args=(process,), daemon=True)]
        self._readers[0].start()

    def start(self) -> None:
        """Start it and return when it answers, which is when its first batch is complete."""
        self.launch()
        if not self._ready.wait(READY_LIMIT_SECONDS) or not self.is_running:
            self.kill()
            raise AssertionError("the coordinator did not start; it said:\n" + "\n".join(self.said))

    @property
    def is_running(self) -> bool:
        """Whether the Python process is there."""
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the Python process alone."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for it to end by itself; its exit code."""
        assert self._process is not None
        code = self._process.wait(STOP_LIMIT_SECONDS)
        self._readers[0].join(STOP_LIMIT_SECONDS)
        return code

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """``kill -9`` for Python and for the JVM, so that neither can finish anything in an orderly way."""
        if self._process is None or not self.is_running:
            return  # its process id may be somebody else's by now
        # Stopped first, so that none of them can see another one go before its own end.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in [self.pid, *descendants(self.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self._process.wait(STOP_LIMIT_SECONDS)
        self._readers[0].join(STOP_LIMIT_SECONDS)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line.rstrip())
            if line.startswith("{") and json.loads(line).get("ready"):
                self._ready.set()
        self._ready.set()


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found
