"""Runs both coordinators before one broker, one after the other, each under the same load."""

import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from streaming.broker import EmbeddedBroker
from streaming.demo.processes import Child
from tests.bench.figures import Event, Figures, Formation, Idle, Load, Plan, Progress, Scale
from tests.bench.usage import CoordinatorProcesses, find_coordinator, memory

START_LIMIT_SECONDS = 180.0
GENERATOR_LIMIT_SECONDS = 600.0
TAIL_LINES = 20

SHIPPED, DEFAULTS = "this job", "Spark's defaults"
MODULES = {SHIPPED: "streaming.cli", DEFAULTS: "tests.bench.default_settings"}

Say = Callable[[str], None]


class BenchFailed(Exception):
    """Something that was to be measured did not happen; the message says what."""


def measure_both(scale: Scale, job_flags: Sequence[str], say: Say) -> dict[str, Figures]:
    """The figures of the job as it ships and of the same query with Spark's defaults."""
    with tempfile.TemporaryDirectory(prefix="group-coordinator-bench-") as folder:
        say("starting a broker")
        with EmbeddedBroker(data_dir=Path(folder) / "kafka") as broker:
            return {name: _measure(name, broker, Path(folder), scale, job_flags, say) for name in MODULES}


def _measure(
    name: str, broker: EmbeddedBroker, folder: Path, scale: Scale, job_flags: Sequence[str], say: Say
) -> Figures:
    prefix = f"{MODULES[name].rpartition('.')[2]}-"
    say(f"{name}: starting the coordinator")
    began = time.monotonic()
    with _coordinator(prefix, MODULES[name], broker, folder, job_flags) as processes:
        start_seconds = round(time.monotonic() - began, 1)
        plan = Plan(
            bootstrap_servers=broker.bootstrap_servers, topic_prefix=prefix, driver_pid=processes.driver, scale=scale
        )
        formations, loads, idle = [], [], Idle(0.0)
        for event in _generated(plan, folder / f"{prefix}load.log"):
            match event:
                case Progress():
                    say(f"{name}: {event.doing}")
                case Formation():
                    formations.append(event)
                case Load():
                    loads.append(event)
                case Idle():
                    idle = event
        used = {role: memory(pids) for role, pids in processes.by_role().items()}
        say(f"{name}: stopping the coordinator")
    return Figures(start_seconds=start_seconds, formations=formations, loads=loads, idle=idle, memory=used)


@contextmanager
def _coordinator(
    prefix: str, module: str, broker: EmbeddedBroker, folder: Path, job_flags: Sequence[str]
) -> Iterator[CoordinatorProcesses]:
    """A coordinator that has completed a batch. It is stopped in order, also when measuring it has failed."""
    ready = threading.Event()

    def on_line(line: str) -> None:
        if line.startswith("{") and json.loads(line).get("ready"):
            ready.set()

    command = [sys.executable, "-m", module, "run", "--json", "--topic-prefix", prefix]
    command += ["--bootstrap-servers", broker.bootstrap_servers, "--checkpoint", str(folder / f"{prefix}checkpoint")]
    log = folder / f"{prefix}coordinator.log"
    with Child("coordinator", [*command, *job_flags], log, on_line) as child:
        try:
            deadline = time.monotonic() + START_LIMIT_SECONDS
            while not ready.wait(0.05):
                if not child.is_running or time.monotonic() > deadline:
                    raise BenchFailed(f"{module} did not start; its log ends with:\n{_tail(log)}")
            yield find_coordinator(os.getpid())
        finally:
            child.terminate()


def _generated(plan: Plan, log: Path) -> Iterator[Event]:
    """What the load generator tells, until it has ended."""
    told: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def on_line(line: str) -> None:
        if line.startswith("{"):
            told.put(msgspec.json.decode(line, type=Event))

    command = [sys.executable, "-m", "tests.bench.generator", msgspec.json.encode(plan).decode()]
    last: Event | None = None
    deadline = time.monotonic() + GENERATOR_LIMIT_SECONDS
    with Child("load generator", command, log, on_line) as child:
        while not isinstance(last, Idle):
            running = child.is_running and time.monotonic() < deadline
            try:
                last = told.get(timeout=0.5)
            except queue.Empty:
                if not running:
                    raise BenchFailed(f"the load generator failed; its log ends with:\n{_tail(log)}") from None
            else:
                yield last
        child.terminate()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-TAIL_LINES:])
