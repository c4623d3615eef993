"""The consumers of a group of the demo: their processes, and what they report."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from streaming.drills.demo.consumer_process import ClientLibrary
from streaming.drills.demo.consumer_reports import ConsumerReport, ConsumerReports
from streaming.embedded.child_process import ChildProcess

PROPERTIES = {
    "session.timeout.ms": 30_000,
    "heartbeat.interval.ms": 1_000,
    "auto.commit.interval.ms": 1_000,
    "auto.offset.reset": "earliest",
}
"""Kafka's properties of all consumers."""


class GroupConsumers:
    """Consumers of one topic in one group, which are killed at the end of a ``with`` block if they still run.

    bootstrap_servers: the brokers' address, or a gateway's. folder: for the consumers' logs. step: called with a line
    for each event, on any thread.
    """

    def __init__(
        self, group: str, topic: str, bootstrap_servers: str, folder: Path, step: Callable[[str], object]
    ) -> None:
        self.group = group
        self.reports = ConsumerReports()
        self._topic = topic
        self._servers = bootstrap_servers
        self._folder = folder
        self._step = step
        self._processes: dict[str, ChildProcess] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    @property
    def live(self) -> list[str]:
        """The names of the consumers that run."""
        return [name for name, process in self._processes.items() if process.is_running]

    def start(self, name: str, library: ClientLibrary, **properties: str | int) -> None:
        """Start a consumer, for the first time or again. properties: Kafka's, by their names with underscores."""
        more = {key.replace("_", "."): value for key, value in properties.items()}
        everything = {
            "bootstrap.servers": self._servers,
            "group.id": self.group,
            "client.id": name,
            **PROPERTIES,
            **more,
        }
        command = [sys.executable, "-m", "streaming.drills.demo.consumer_process", library, self._topic]
        process = ChildProcess(
            name,
            [*command, json.dumps(everything)],
            self._folder / f"{name}.log",
            lambda line: self._on_line(name, line),
        )
        self._processes[name] = self._stack.enter_context(process)
        self._step(f"{name} starts")

    def close(self, name: str) -> None:
        """Close a consumer: it leaves the group, unless it is a static member."""
        self._processes[name].terminate()

    def kill(self, name: str) -> None:
        """``kill -9`` a consumer."""
        self._processes[name].kill()
        self.reports.forget(name)

    def _on_line(self, name: str, line: str) -> None:
        if not line.startswith("{"):
            return
        report = msgspec.json.decode(line, type=ConsumerReport)
        self.reports.add(name, report)
        if text := report.described(name):
            self._step(text)
