"""Coordinators as processes to be measured: started, watched batch by batch, stopped or killed."""

import json
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from streaming.broker import EmbeddedBroker
from streaming.demo.processes import Child
from streaming.topics import TopicNames
from tests.bench import watched
from tests.bench.usage import CoordinatorProcesses, find_coordinator, tree

START_LIMIT_SECONDS = 180.0
PROGRESS_LIMIT_SECONDS = 30.0
TAIL_LINES = 20

SHIPPED_MODULE = "tests.bench.watched"
DEFAULTS_MODULE = "tests.bench.default_settings"


class BenchFailed(Exception):
    """Something that was to be measured did not happen; the message says what."""


class Batch(NamedTuple):
    """A finished batch: when it began (seconds since the epoch), and Spark's report of it."""

    began: float
    report: dict[str, Any]

    @property
    def milliseconds(self) -> float:
        """What it took as a whole."""
        return float(self.report["durationMs"]["triggerExecution"])


class Coordinator:
    """A running coordinator with topics and a checkpoint of its own. Make one with :func:`running`."""

    def __init__(
        self, name: str, module: str, broker: EmbeddedBroker, folder: Path, settings: dict[str, object]
    ) -> None:
        self.topics = TopicNames(f"{name}-")
        self.checkpoint = folder / f"{name}-checkpoint"
        self.start_seconds = 0.0
        self._module = module
        self._log = folder / f"{name}.log"
        self._progress = folder / f"{name}-progress"
        self._ready = threading.Event()
        options = {
            "bootstrap-servers": broker.bootstrap_servers,
            "checkpoint": str(self.checkpoint),
            "topic-prefix": self.topics.prefix,
            **settings,
        }
        file = folder / f"{name}.toml"
        # JSON's strings and numbers are TOML's, too.
        file.write_text("".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in options.items()))
        command = [sys.executable, "-m", module, "run", "--json", "--config", str(file)]
        self._child = Child(name, command, self._log, self._on_line)
        self._processes: CoordinatorProcesses | None = None

    def _on_line(self, line: str) -> None:
        if line.startswith("{") and json.loads(line).get("ready"):
            self._ready.set()

    def start(self) -> None:
        """Start it, again if need be; returns when it has completed a batch."""
        began = time.monotonic()
        self._ready.clear()
        self._progress.touch()
        os.environ[watched.VARIABLE] = str(self._progress)
        self._child.start()
        while not self._ready.wait(0.02):
            if not self._child.is_running or time.monotonic() > began + START_LIMIT_SECONDS:
                raise BenchFailed(f"{self._module} did not start; {self.last_words()}")
        self.start_seconds = round(time.monotonic() - began, 1)
        self._processes = find_coordinator(os.getpid())

    @property
    def is_watched(self) -> bool:
        """Whether it tells of its batches."""
        return self._module == SHIPPED_MODULE

    @property
    def processes(self) -> CoordinatorProcesses:
        """Its processes by role. AssertionError before the first start."""
        assert self._processes is not None
        return self._processes

    def last_words(self) -> str:
        """Whether it runs, its last batch, and the end of its log."""
        running = "runs" if self._child.is_running else "has ended"
        tail = "\n".join(self._log.read_text().splitlines()[-TAIL_LINES:])
        batch = "\n".join(self._progress.read_text().splitlines()[-1:])
        return f"its process {running}, its last batch was\n{batch}\nand its log ends with:\n{tail}"

    def kill(self) -> None:
        """kill -9 of everything: the JVM, which has a session of its own, would end in order by itself."""
        for pid in tree(self.processes.driver):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._child.kill()

    def close(self) -> None:
        """Stop it in order if it runs."""
        if self._child.is_running:
            self._child.terminate()

    def batches(self, since: float, until: float) -> list[Batch]:
        """The batches that began in this time (seconds since the epoch), once the last of them is known."""
        deadline = time.monotonic() + PROGRESS_LIMIT_SECONDS
        while True:
            known = [_batch(line) for line in self._progress.read_text().splitlines() if line.endswith("}")]
            if (known and known[-1].began >= until) or time.monotonic() > deadline:
                return [batch for batch in known if since <= batch.began < until]
            time.sleep(0.1)


def _batch(line: str) -> Batch:
    report = json.loads(line)
    return Batch(datetime.fromisoformat(report["timestamp"]).timestamp(), report)


def median_ms(batches: Sequence[Batch]) -> float:
    """What a batch took; 0 when there was none."""
    return statistics.median(batch.milliseconds for batch in batches) if batches else 0.0


@contextmanager
def running(
    name: str,
    broker: EmbeddedBroker,
    folder: Path,
    settings: dict[str, object],
    module: str = SHIPPED_MODULE,
) -> Iterator[Coordinator]:
    """A coordinator that has completed a batch. It is stopped in order, also when measuring it has failed."""
    coordinator = Coordinator(name, module, broker, folder, settings)
    try:
        coordinator.start()
        yield coordinator
    except TimeoutError as error:
        raise BenchFailed(f"{error}; {coordinator.last_words()}") from error
    finally:
        coordinator.close()
