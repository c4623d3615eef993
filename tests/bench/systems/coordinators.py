"""Coordinators as processes to measure: started, observed batch by batch, stopped or killed."""

import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import ROOT
from tests.bench.usage import CoordinatorProcesses, find_coordinator
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.source_tree import code_of

START_LIMIT_SECONDS = 180.0

ENDED_SECONDS = 3.0
"""If no batch has begun for so long, the last one has ended and is recorded."""

DEFAULTS_MODULE = "tests.bench.systems.default_settings"
SHIPPED_MODULE = "streaming.cli"


class BenchFailed(Exception):
    """A measurement is not possible; the message names the reason."""


class Batch(NamedTuple):
    """A completed batch: its start (seconds since the epoch), and Spark's progress report."""

    began: float
    report: dict[str, Any]

    @property
    def milliseconds(self) -> float:
        """The duration of the whole batch."""
        return float(self.report["durationMs"]["triggerExecution"])


class Coordinator(CoordinatorProcess):
    """A running coordinator with topics and a checkpoint of its own. Make one with :func:`running`."""

    def __init__(
        self,
        name: str,
        module: str,
        broker: EmbeddedBroker,
        folder: Path,
        settings: dict[str, object],
        checkout: Path = ROOT,
        environment: Mapping[str, str] = MappingProxyType({}),
        records_progress: bool = False,
    ) -> None:
        self.records_progress = records_progress
        self.start_seconds = 0.0
        self._module = module
        self._progress = folder / f"{name}-progress"
        self._processes: CoordinatorProcesses | None = None
        recorded = {"progress-file": str(self._progress)} if records_progress else {}
        super().__init__(
            broker.bootstrap_servers,
            folder / name,
            {"topic-prefix": f"{name}-", **recorded, **settings},
            defaults={},
            module=module,
            environment={**code_of(checkout), **environment},
        )

    def start(self, limit_seconds: float = START_LIMIT_SECONDS) -> None:
        """Start the process, for the first time or after a kill; return when it has completed a batch."""
        began = time.monotonic()
        self._progress.touch()
        try:
            super().start(limit_seconds)
        except AssertionError as failure:
            raise BenchFailed(f"{self._module} did not start: {failure}") from failure
        self.start_seconds = round(time.monotonic() - began, 1)
        self._processes = find_coordinator(self.pid)

    @property
    def processes(self) -> CoordinatorProcesses:
        """The processes by role. Raises AssertionError before the first start."""
        assert self._processes is not None
        return self._processes

    def diagnosis(self) -> str:
        """Return the last batch, the state of the process, and the end of its output."""
        batch = "\n".join(self._progress.read_text().splitlines()[-1:])
        return f"the last batch was\n{batch}\n{self.tail()}"

    def close(self) -> None:
        """Stop the process cleanly if it is running; kill it if that fails."""
        try:
            if self.is_running:
                self.stop()
        finally:
            self.kill()

    def batches(self, since: float, until: float) -> list[Batch]:
        """Return the batches that began in this interval (seconds since the epoch); wait until all are recorded."""
        while True:
            known = [_batch(line) for line in self._progress.read_text().splitlines() if line.endswith("}")]
            if time.time() >= until + ENDED_SECONDS or (known and known[-1].began >= until):
                return [batch for batch in known if since <= batch.began < until]
            time.sleep(0.1)


def _batch(line: str) -> Batch:
    report = json.loads(line)
    return Batch(datetime.fromisoformat(report["timestamp"]).timestamp(), report)


def median_ms(batches: Sequence[Batch]) -> float:
    """Return the median duration of a batch; 0 when there is none."""
    return statistics.median(batch.milliseconds for batch in batches) if batches else 0.0


@contextmanager
def running(
    name: str,
    broker: EmbeddedBroker,
    folder: Path,
    settings: dict[str, object],
    module: str = SHIPPED_MODULE,
    checkout: Path = ROOT,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    records_progress: bool = False,
) -> Iterator[Coordinator]:
    """Run a coordinator, with the code of ``checkout``, that has completed a batch; stop it cleanly at the end."""
    coordinator = Coordinator(name, module, broker, folder, settings, checkout, environment, records_progress)
    try:
        coordinator.start()
        yield coordinator
    except TimeoutError as error:
        raise BenchFailed(f"{error}; {coordinator.diagnosis()}") from error
    finally:
        coordinator.close()
