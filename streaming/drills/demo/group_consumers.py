"""The consumers of a group of the demo: their processes, what they report, and the checks of these reports."""

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from streaming.drills.demo.consumer_process import ClientLibrary, ConsumerReport
from streaming.embedded.child_process import ChildProcess

PROPERTIES = {
    "session.timeout.ms": 30_000,
    "heartbeat.interval.ms": 1_000,
    "auto.commit.interval.ms": 1_000,
    "auto.offset.reset": "earliest",
}
"""Kafka's properties of all consumers."""


@dataclass(frozen=True)
class Check:
    """The result of a check. ``detail`` has the figures behind it."""

    name: str
    passed: bool
    detail: str


class ConsumerReports:
    """Collects the reports of a group's consumers. Thread-safe.

    owned, generations: each live consumer's partitions and generation. assignments: how many the consumers received.
    delivered: the number of records, counting repeated deliveries.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.owned: dict[str, set[int]] = {}
        self.generations: dict[str, int] = {}
        self.assignments = self.delivered = 0
        self._owners: dict[int, dict[str, set[int]]] = defaultdict(dict)
        self._consumed: dict[int, set[int]] = defaultdict(set)

    def add(self, name: str, report: ConsumerReport) -> None:
        """Add a report of the consumer ``name``."""
        with self._lock:
            match report.event:
                case "owns":
                    self.assignments += 1
                    self.owned[name] = set(report.partitions)
                    self.generations[name] = report.generation
                    self._owners[report.generation][name] = set(report.partitions)
                case "revoked" | "lost":
                    self.owned[name] = self.owned.get(name, set()) - set(report.partitions)
                case "consumed":
                    self._consumed[report.partitions[0]].update(range(report.first, report.last + 1))
                    self.delivered += report.last - report.first + 1
                case "closed":
                    self.forget(name)

    def forget(self, name: str) -> None:
        """Remove a consumer that has ended from the live ones."""
        with self._lock:
            self.owned.pop(name, None)
            self.generations.pop(name, None)

    def shared_by(self, *names: str, partitions: int) -> bool:
        """Whether exactly these consumers are live and share all partitions evenly in one generation."""
        with self._lock:
            shares = [len(self.owned.get(name, ())) for name in names]
            return (
                set(self.owned) == set(names)
                and set().union(*self.owned.values()) == set(range(partitions))
                and sum(shares) == partitions
                and max(shares) - min(shares) <= 1
                and len({self.generations[name] for name in names}) == 1
            )

    def has_consumed(self, ends: Mapping[int, int]) -> bool:
        """Whether every record before the end offset of each partition was consumed."""
        with self._lock:
            return all(len(self._consumed[partition]) >= end for partition, end in ends.items())

    # ---- checks --------------------------------------------------------------------------------------------

    def every_record_consumed(self, ends: Mapping[int, int]) -> Check:
        """Check that no record before the end offsets was skipped."""
        missing = {p: end - len(self._consumed[p] & set(range(end))) for p, end in ends.items()}
        missing = {p: count for p, count in missing.items() if count}
        total = sum(ends.values())
        repeated = self.delivered - sum(map(len, self._consumed.values()))
        detail = (
            f"missing, by partition: {missing}" if missing else f"records: {total}, repeated deliveries: {repeated}"
        )
        return Check("every record was consumed", not missing and total > 0, detail)

    def one_owner_per_generation(self) -> Check:
        """Check that no two consumers owned the same partition in one generation."""
        conflicts = [
            f"generation {generation}: {first} and {second} both own {sorted(owners[first] & owners[second])}"
            for generation, owners in self._owners.items()
            for first in owners
            for second in owners
            if first < second and owners[first] & owners[second]
        ]
        detail = "; ".join(conflicts) or f"generations seen: {len(self._owners)}"
        return Check("no partition had two owners in one generation", not conflicts, detail)


def committed_everything(committed: Mapping[int, int], ends: Mapping[int, int]) -> Check:
    """Check that the committed offset of every partition is its end offset."""
    wrong = {p: (committed.get(p), end) for p, end in ends.items() if committed.get(p) != end}
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in ends.items())
    detail = f"(committed, end) by partition: {wrong}" if wrong else f"by partition: {offsets}"
    return Check("the committed offset of every partition is its end", not wrong, detail)


class GroupConsumers:
    """Consumers of one topic in one group, which are killed at the end of ``stack`` if they still run.

    bootstrap_servers: the brokers' address, or a gateway's. folder: for the consumers' logs. step: called with a line
    for each event, on any thread.
    """

    def __init__(
        self,
        group: str,
        topic: str,
        bootstrap_servers: str,
        folder: Path,
        step: Callable[[str], object],
        stack: ExitStack,
    ) -> None:
        self.group = group
        self.reports = ConsumerReports()
        self._topic = topic
        self._servers = bootstrap_servers
        self._folder = folder
        self._step = step
        self._processes: dict[str, ChildProcess] = {}
        self._stack = stack

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
