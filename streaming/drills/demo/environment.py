"""What the steps of the demo share: the console, the processes, and the reports of the consumers."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from confluent_kafka import Producer
from rich.console import Console

from streaming.demo.consumer_reports import ConsumerReport, ConsumerReports
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.child_process import ChildProcess
from streaming.embedded.job_process import JobProcess, NotReported

TOPIC, GROUP, PARTITIONS = "orders", "billing", 6
RECORDS_PER_SECOND = 200
SESSION_TIMEOUT_MS = 30_000
KILLED_SESSION_TIMEOUT_MS = 6_000
"""Short, because the demo waits for its end."""
KILLED_MEMBER = "consumer-2"
STATIC_MEMBER, STATIC_INSTANCE = "consumer-3", "till-3"
WAIT_SECONDS = 60.0


class DemoFailed(Exception):
    """A condition that the demo waits for was not met; the message names it."""


class Environment:
    """The console, the processes and the reports of one run of the demo.

    folder: for checkpoint, broker data and logs. stack: ends the processes.
    """

    def __init__(self, console: Console, folder: Path, stack: ExitStack) -> None:
        self.console = console
        self.folder = folder
        self.stack = stack
        self.reports = ConsumerReports()
        self.started = time.monotonic()
        self.consumers: dict[str, ChildProcess] = {}
        self.broker = EmbeddedBroker(data_dir=folder / "kafka")

    def log(self, text: str) -> None:
        """Print a line with the seconds since the start of the demo."""
        self.console.print(f"[dim]{time.monotonic() - self.started:5.1f}s[/dim]  {text}", highlight=False)

    def heading(self, title: str, explanation: str) -> None:
        """Print the title of a step, and what to expect of it."""
        self.console.print(f"\n[bold]{title}[/bold]\n[dim]{explanation}[/dim]", highlight=False)

    @contextmanager
    def waiting_for(self, what: str) -> Iterator[None]:
        """Show what the demo waits for, and afterwards how long that took."""
        began = time.monotonic()
        with self.console.status(f"waiting: {what} ..."):
            yield
        self.log(f"[green]{what}[/green] (after {time.monotonic() - began:.1f} s)")

    def await_reports(self, what: str, condition: Callable[[], bool], reports: ConsumerReports | None = None) -> None:
        """Wait until a condition on the consumers' reports holds, by default on those of group ``billing``.

        Raises DemoFailed after :data:`WAIT_SECONDS`.
        """
        with self.waiting_for(what):
            if not (reports or self.reports).wait_until(condition, WAIT_SECONDS):
                raise DemoFailed(f"not within {WAIT_SECONDS:.0f} s: {what}")

    # ---- processes -----------------------------------------------------------------------------------------

    def new_job(self, name: str, *arguments: str) -> JobProcess:
        """A job's process, not started yet. All of them have the same checkpoint."""
        log = self.folder / f"{name}.log"
        servers = self.broker.bootstrap_servers
        return JobProcess(name, servers, self.folder / "checkpoint", log, arguments=arguments)

    def await_job(self, what: str, reported: Callable[[], None]) -> None:
        """Wait for a report of a job. Raises DemoFailed with the end of its log."""
        with self.waiting_for(what):
            try:
                reported()
            except NotReported as failure:
                raise DemoFailed(str(failure)) from failure

    def start_consumer(self, name: str) -> None:
        """Start a consumer's process, for the first time or again."""
        if name not in self.consumers:
            self.consumers[name] = self._new_consumer(name)
            self.stack.enter_context(self.consumers[name])
        else:
            self.consumers[name].start()
        self.log(f"{name} starts")

    def _new_consumer(self, name: str) -> ChildProcess:
        command = [
            sys.executable,
            *("-m", "streaming.demo.consumer_process", "--bootstrap-servers", self.broker.bootstrap_servers),
            *("--group", GROUP, "--topic", TOPIC, "--name", name),
            *("--session-timeout-ms", str(KILLED_SESSION_TIMEOUT_MS if name == KILLED_MEMBER else SESSION_TIMEOUT_MS)),
            *(("--instance-id", STATIC_INSTANCE) if name == STATIC_MEMBER else ()),
        ]
        log = self.folder / f"{name}.log"
        return ChildProcess(name, command, log, lambda line: self._on_consumer_line(name, line))

    def _on_consumer_line(self, name: str, line: str) -> None:
        if not line.startswith("{"):
            return
        report = msgspec.json.decode(line, type=ConsumerReport)
        self.reports.add(name, report)
        partitions = " ".join(map(str, report.partitions)) or "none"
        if report.event == "owns":
            self.log(f"{name} owns partitions [cyan]{partitions}[/cyan] in generation {report.generation}")
        elif report.event in ("revoked", "lost"):
            verb = "gives up" if report.event == "revoked" else "loses"
            self.log(f"{name} {verb} partitions [yellow]{partitions}[/yellow]")


class RecordProducer(threading.Thread):
    """Appends records to all partitions at a steady rate until :meth:`finish`."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(name="record-producer", daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5})
        self._finishing = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._finishing.wait(0.05):
            for _ in range(RECORDS_PER_SECOND // 20):
                self._producer.produce(TOPIC, value=f"order {number}".encode(), partition=number % PARTITIONS)
                number += 1
            self._producer.poll(0)

    def finish(self) -> None:
        """Stop producing, and wait until every record is in the topic. Raises DemoFailed if one cannot be written."""
        self._finishing.set()
        if self.is_alive():
            self.join(WAIT_SECONDS)
        if self._producer.flush(WAIT_SECONDS):
            raise DemoFailed("not all records could be written to the topic")
