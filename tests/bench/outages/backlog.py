"""A backlog after an outage: how fast it is worked off, in how much memory, and whether a live member is expelled.

`make bench-backlog` measures a million requests at a driver's heap of 1 GiB, in some five minutes. Members
with short sessions send heartbeats during the outage and while the job works the backlog off; those of one group stop
with the outage, and must be expelled after it.
"""

import json
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.events import Events, PreparedRequest
from tests.bench.scenarios.loads import group_names, shuffled
from tests.bench.usage import find_coordinator, memory
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.waiting import wait_until

SESSION_MS = 6_000
HEARTBEAT_SECONDS = 2.0
MEMORY_SECONDS = 0.2
LIMIT_SECONDS = 600.0
WORKED_OFF = "the backlog is worked off"

SETTINGS = {"driver-memory": "1g", "request-partitions": 4, "response-partitions": 1}


class Outage(msgspec.Struct, frozen=True):
    """What to play: the members, the requests that wait after the outage, and the most that a batch reads."""

    groups: int
    members: int
    requests: int
    settings: Mapping[str, object]


class WorkedOff(msgspec.Struct, frozen=True):
    """How a backlog was worked off. The sizes are the largest RSS that was seen, in MiB."""

    requests: int
    seconds: float
    jvm_rss_mib: float
    workers_rss_mib: float
    live_members: int
    live_members_expelled: int
    stopped_members: int
    stopped_members_expelled: int
    lines: list[str]

    @property
    def rate(self) -> float:
        """Requests worked off each second, those that were appended meanwhile not counted."""
        return self.requests / self.seconds


class _Peak:
    """The largest RSS of the coordinator's processes by role."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.rss_mib: dict[str, float] = {}

    def sample(self) -> None:
        try:
            roles = find_coordinator(self._pid).by_role()
        except LookupError:  # before the start of the JVM
            return
        for role, pids in roles.items():
            self.rss_mib[role] = max(self.rss_mib.get(role, 0.0), memory(pids).rss_mib)


def play(broker: EmbeddedBroker, folder: Path, outage: Outage, report: Callable[[str], None]) -> WorkedOff:
    """Play an outage on a coordinator of its own, and measure how it works the backlog off."""
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, outage.settings, defaults={})
    topics = coordinator.topics
    try:
        coordinator.start()
        with Events(broker.bootstrap_servers, topics.requests, topics.responses) as events:
            report(f"forming {outage.groups} groups of {outage.members}")
            names = group_names("backlog", outage.groups)
            members = events.form_groups(names, outage.members, session_timeout_ms=SESSION_MS)
            stopped = {member.member_id for member in members if member.group_id == names[0]}
            live = [member for member in members if member.member_id not in stopped]
            with _heartbeats(broker, topics, events.heartbeats(members)):
                _await_members(broker, topics, len(members))
                coordinator.kill()
            with _heartbeats(broker, topics, events.heartbeats(live)):
                report(f"appending {outage.requests:,} requests while the coordinator is down")
                load = shuffled([*events.heartbeats(live), *events.commits(names)])
                events.append_all(islice(cycle(load), outage.requests))
                report("starting the coordinator")
                peak, seconds = _work_off(coordinator, report)
                report("waiting for the end of the sessions of those that have stopped")
                removed = _removed_members(broker, topics, stopped)
        return WorkedOff(
            outage.requests,
            round(seconds, 1),
            peak.rss_mib["driver JVM"],
            peak.rss_mib["Python workers"],
            len(live),
            len(removed - stopped),
            len(stopped),
            len(removed & stopped),
            [json.loads(line)["message"] for line in coordinator.output if line.startswith("{")],
        )
    finally:
        coordinator.kill()


@contextmanager
def _heartbeats(broker: EmbeddedBroker, topics: TopicNames, heartbeats: list[PreparedRequest]) -> Iterator[None]:
    """Append each of these heartbeats at an interval, spread over it, whether or not it is answered."""
    stop = threading.Event()

    def send() -> None:
        with Events(broker.bootstrap_servers, topics.requests, topics.responses) as events:
            tenth = max(1, -(-len(heartbeats) // 10))
            while not stop.is_set():
                for first in range(0, len(heartbeats), tenth):
                    began = time.monotonic()
                    events.append_all(heartbeats[first : first + tenth])
                    stop.wait(max(0.0, HEARTBEAT_SECONDS / 10 - (time.monotonic() - began)))

    sender = threading.Thread(target=send, name="heartbeats")
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()


def _await_members(broker: EmbeddedBroker, topics: TopicNames, count: int) -> None:
    with reading(broker.bootstrap_servers, topics.directory) as directory:

        def members() -> int:
            newest = {record.key: record.value for record in directory.poll()}
            return sum(group["members"] for group in newest.values() if group and group["groupState"] == "Stable")

        wait_until(lambda: members() == count, f"{count} members in Stable groups")


def _work_off(coordinator: CoordinatorProcess, report: Callable[[str], None]) -> tuple[_Peak, float]:
    """Start the coordinator; returns its memory, and the seconds from its first batch to the end of the backlog."""
    shown = 0
    coordinator.launch()
    peak = _Peak(coordinator.pid)
    began: float | None = None

    def is_worked_off() -> bool:
        nonlocal shown, began
        peak.sample()
        lines = list(coordinator.output)
        for line in lines[shown:]:
            report(line)
        shown = len(lines)
        if began is None and any("Python workers: " in line for line in lines):
            began = time.monotonic()
        return any(WORKED_OFF in line for line in lines)

    wait_until(is_worked_off, WORKED_OFF, LIMIT_SECONDS, describe=coordinator.tail, pause=MEMORY_SECONDS)
    assert began is not None
    return peak, time.monotonic() - began


def _removed_members(broker: EmbeddedBroker, topics: TopicNames, stopped: set[str]) -> set[str]:
    """The members that the journal removes; waits until those that have stopped are among them, and a session more."""
    with reading(broker.bootstrap_servers, topics.journal) as journal:
        counted = 0
        removed: set[str] = set()

        def read() -> bool:
            nonlocal counted
            records = journal.poll()
            for record in records[counted:]:
                change: dict[str, Any] = record.value["record"]
                if change["type"] == "MemberRemoved":
                    removed.add(change["memberId"])
            counted = len(records)
            return stopped <= removed

        wait_until(read, "the members that have stopped are expelled")
        over = time.monotonic() + SESSION_MS / 1000 * 2
        wait_until(lambda: read() and time.monotonic() > over, "two more sessions")
    return removed


def backlog(
    requests: Annotated[int, typer.Option(help="How many requests wait.")] = 1_000_000,
    groups: Annotated[int, typer.Option(help="Groups of ten members.")] = 100,
    state_partitions: Annotated[int, typer.Option(help="Partitions of the state.")] = 1,
    most: Annotated[int, typer.Option("--max-requests-per-batch", help="The most requests of a batch.")] = 50_000,
) -> None:
    """Measure how a backlog is worked off, and print the figures as JSON."""
    # As an exception, SIGTERM ends the broker and the coordinator, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {**SETTINGS, "state-partitions": state_partitions, "max-requests-per-batch": most}
    with tempfile.TemporaryDirectory(prefix="group-coordinator-backlog-") as folder, EmbeddedBroker() as broker:
        outage = Outage(groups, 10, requests, settings)
        figures = play(broker, Path(folder), outage, lambda line: typer.echo(line, err=True))
    typer.echo(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode())
    typer.echo(f"{figures.rate:,.0f} requests a second", err=True)


if __name__ == "__main__":
    typer.run(backlog)
