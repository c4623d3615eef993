"""What an upgrade from the last release, and the way back, cost clients: ``python -m tests.bench.outages.upgrade``.

The jobs of both releases take turns on one checkpoint. The upgrade rolls: today's job stands by when the earlier one is
stopped. On the way back today's job is stopped, ``checkpoint downgrade`` writes the groups, and the earlier job starts.
Clients commit all the time, as groups without members and as members of both protocols. Each offset that was
acknowledged has to be there at the end.
"""

import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coordinator_logic.messages import GroupToFetch
from streaming.client import CoordinatorClient
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import machine
from tests.bench.outages import upgrade_clients
from tests.bench.outages.checkpoints import timed
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.processes import Process
from tests.support.source_tree import RELEASE_0_1_0, CommitNotThere, code_of, unpack_commit
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

RELEASE, COMMIT = "0.1.0", RELEASE_0_1_0
TOPIC, PARTITIONS = "orders", 4
STEADY_SECONDS = 5.0
"""How long every group has answers before a change, and after it."""

ANSWERS_WITHIN_SECONDS = 180.0
STANDBY_LIMIT_SECONDS = 180.0

OF_MEMBERS = {"GenerationStarted", "GroupEpochBumped", "MemberAdded", "MemberRemoved", "ConsumerMemberChanged"}
"""The journal's records of members that come and go, and of generations."""


class Change(msgspec.Struct, frozen=True):
    """What clients saw of a change of the release. Times are in seconds.

    silence: the longest time in which no commit was acknowledged. downgrade: what the command took of it. errors: how
    many clients saw, by kind. assignments: those that members got. membership: the journal's records of members and
    generations.
    """

    to: str
    silence: float
    downgrade: float
    errors: dict[str, int]
    assignments: int
    membership: int


class Clients:
    """The clients, with the code of either release, and what they report."""

    def __init__(self, servers: str, environment: Mapping[str, str]) -> None:
        self._journal = TopicNames().journal
        self._servers = servers
        self.reports: list[tuple[float, str, str, list[object]]] = []
        command = [sys.executable, str(upgrade_clients.__file__), servers, TOPIC]
        self._process = Process("clients", command, self._read, environment)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run them until the end of the block."""
        self._process.start()
        try:
            yield
            assert self._process.stop() == 0, self._process.tail()
        finally:
            self._process.kill()

    def await_steady(self) -> None:
        """Wait until each partition of each group has an acknowledged commit of now, and some seconds more."""
        since = time.monotonic()
        groups = upgrade_clients.GROUPS_OF_COMMITS + 2 * PARTITIONS
        wait_until(
            lambda: len(self._acknowledged(since)) == groups,
            "answers for every group",
            ANSWERS_WITHIN_SECONDS,
            describe=self._process.tail,
        )
        time.sleep(STEADY_SECONDS)

    def acknowledged(self) -> dict[tuple[str, int], int]:
        """The highest offset that was acknowledged, by group and partition."""
        return self._acknowledged(0.0)

    def membership(self) -> int:
        """How many records of members and generations the journal has."""
        with reading(self._servers, self._journal) as journal:
            return sum(each.value["record"]["type"] in OF_MEMBERS for each in journal.to_the_end())

    def seen(self, to: str, since: float, downgrade: float, membership_before: int) -> Change:
        """What they saw of a change that began at ``since``, by ``time.monotonic``."""
        reports = list(self.reports)
        times = sorted(at for at, what, *_ in reports if what == "acked")
        silence = max(after - before for before, after in pairwise(times) if after > since)
        errors = Counter(str(details[0]) for at, what, _, details in reports if what == "error" and at > since)
        assignments = sum(what == "assigned" and at > since for at, what, *_ in reports)
        membership = self.membership() - membership_before
        return Change(to, round(silence, 1), downgrade, errors, assignments, membership)

    def _acknowledged(self, since: float) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for at, what, group, details in list(self.reports):
            if what == "acked" and at > since:
                partition, offset = map(int, map(str, details))
                found[group, partition] = max(offset, found.get((group, partition), -1))
        return found

    def _read(self, line: str) -> None:
        if line.startswith("["):
            at, what, group, *details = json.loads(line)
            self.reports.append((at, what, group, details))


class Jobs:
    """The jobs of both releases, on one checkpoint."""

    def __init__(self, servers: str, folder: Path, code: Mapping[str, str], stack: ExitStack) -> None:
        self.checkpoint = folder / "checkpoint"
        options = {"topic-prefix": "", "driver-memory": "512m", "checkpoint": str(self.checkpoint), "standby": True}
        self.earlier, self.today = (
            CoordinatorProcess(servers, folder / name, options, defaults={}, environment=environment)
            for name, environment in (("earlier", code), ("today", {}))
        )
        for job in (self.earlier, self.today):
            stack.callback(job.kill)
        self._brokers = ("-b", servers)

    def upgrade(self, clients: Clients, warm: float) -> Change:
        """Start today's job as a standby, and stop the earlier one when that is warm."""
        self.today.launch()
        self.today.await_line("that it stands by", lambda line: "standby: the job on" in line, STANDBY_LIMIT_SECONDS)
        time.sleep(warm)
        before, began = clients.membership(), time.monotonic()
        self.earlier.stop()
        clients.await_steady()
        return clients.seen("today", began, 0.0, before)

    def go_back(self, clients: Clients) -> Change:
        """Stop today's job, change the checkpoint, and start the earlier job."""
        before, began = clients.membership(), time.monotonic()
        self.today.stop()
        command = timed(["downgrade", self.checkpoint, "--to", RELEASE, *self._brokers, "--set=driver-memory=512m"])
        self.earlier.launch()
        clients.await_steady()
        return clients.seen(RELEASE, began, command.seconds, before)

    def verify(self) -> str:
        """Compare the checkpoint, which no job uses, with the journal; returns the last line."""
        return timed(["verify", self.checkpoint, *self._brokers, "--set=driver-memory=512m"]).last_line


def lost(servers: str, acknowledged: Mapping[tuple[str, int], int]) -> list[str]:
    """The partitions whose committed offset is before one that was acknowledged."""
    groups = sorted({group for group, _ in acknowledged})
    with CoordinatorClient(servers) as client:
        fetched = client.offset_fetch([GroupToFetch(group) for group in groups]).groups
    read = {
        (group.group_id, partition.partition_index): partition.committed_offset
        for group in fetched
        for topic in group.topics
        for partition in topic.partitions
    }
    behind = {place: offset for place, offset in acknowledged.items() if read.get(place, -1) < offset}
    return [f"{place}: {read.get(place)} for {offset}" for place, offset in behind.items()]


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often to upgrade and to go back.")] = 3,
    warm: Annotated[float, typer.Option(help="The age of the standby when the earlier job is stopped, s.")] = 60.0,
    clients_of: Annotated[str, typer.Option(help=f"The release of the clients: {RELEASE} or today.")] = RELEASE,
) -> None:
    """Measure upgrades and ways back; print a line of JSON for each, and what is lost at the end."""
    # As an exception, SIGTERM ends the processes, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="group-coordinator-upgrade-") as name, ExitStack() as stack:
        try:
            code = code_of(unpack_commit(COMMIT, Path(name) / "code"))
        except CommitNotThere as reason:
            raise SystemExit(f"the code of {RELEASE} cannot be had: {reason}") from reason
        servers = stack.enter_context(EmbeddedBroker()).bootstrap_servers
        create_topic(servers, TOPIC, PARTITIONS)
        jobs = Jobs(servers, Path(name), code, stack)
        jobs.earlier.start()
        clients = Clients(servers, code if clients_of == RELEASE else {})
        with clients.running():
            clients.await_steady()
            for _ in range(rounds):
                _print(jobs.upgrade(clients, warm))
                _print(jobs.go_back(clients))
        acknowledged = clients.acknowledged()
        print(f"{len(acknowledged)} offsets, lost: {lost(servers, acknowledged) or 'none'}", flush=True)
        jobs.earlier.stop()
        print(jobs.verify(), flush=True)
        _print(machine())


def _print(figures: object) -> None:
    print(msgspec.json.encode(figures).decode(), flush=True)


if __name__ == "__main__":
    typer.run(main)
