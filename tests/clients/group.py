"""A group whose members are processes with any client library, and the checks on what they report."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.clients.programs.libraries import CLASSIC, Library, member_command
from tests.support.processes import Process
from tests.support.waiting import LIMIT_SECONDS

__all__ = ["Member", "WatchedGroup"]

SESSION_MS = 60_000
"""Long enough that no member is expelled when the machine stalls."""

KILLED_SESSION_MS = 10_000
"""For members that are killed: the test waits until the session expires."""


TIMED_OUT = "Local: Timed out"
"""In the error of a member whose commit was not answered."""


@dataclass
class Ownership:
    """The time in which a member owned a partition (Unix milliseconds); ``until`` is None while it still owns it."""

    member: str
    since: int
    until: int | None = None


class Member:
    """A member's process, and the state that it reports."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self.owned: set[int] = set()
        self.assignments = 0
        """How many assignments it received: one per rebalance."""
        self.revocations = 0
        self.consumed = 0
        self.positions: dict[int, int] = {}


class WatchedGroup:
    """Members with the same settings on one topic, and everything that they report.

    ``assignor``: by default range with the classic protocol, and what the coordinator prefers with the consumer group
    protocol. ``violations`` lists what members did that no member may do, ``refused_commits`` the errors with which
    commits were answered.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group_id: str,
        topic: str,
        partitions: int,
        folder: Path,
        assignor: str | None = None,
        session_ms: int = SESSION_MS,
        auto_commit: bool = False,
        protocol: str = CLASSIC,
    ) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.members: dict[str, Member] = {}
        self.violations: list[str] = []
        self.committed: dict[int, int] = {}
        self.refused_commits: list[str] = []
        self.consumed: dict[int, set[int]] = defaultdict(set)
        self.delivered = 0
        self._bootstrap_servers = bootstrap_servers
        self._folder = folder
        self._assignor = assignor
        self._session_ms = session_ms
        self._auto_commit = auto_commit
        self._protocol = protocol
        self._ownerships: dict[int, list[Ownership]] = defaultdict(list)
        self._changed = threading.Condition()

    # ---- processes -----------------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        library: Library,
        instance_id: str | None = None,
        session_ms: int | None = None,
        protocol: str | None = None,
    ) -> Member:
        """Start a new member, by default with the group's session timeout and protocol; does not wait for its join."""
        protocol = protocol or self._protocol
        options = {
            "bootstrap-server": self._bootstrap_servers,
            "topic": self.topic,
            "group-id": self.group_id,
            "group-instance-id": instance_id,
            "session-timeout": (session_ms or self._session_ms) if protocol == CLASSIC else None,
        }
        command = member_command(
            library, self._folder, self._assignor, options, auto_commit=self._auto_commit, protocol=protocol
        )
        process = Process(f"{self.group_id}/{name}", command, lambda line: self._on_line(name, line))
        self.members[name] = Member(name, process)
        process.start()
        return self.members[name]

    def start_again(self, name: str) -> None:
        """Start a member whose process has ended."""
        self.members[name].process.start()

    def stop(self, *names: str) -> None:
        """Shut members down cleanly, all at the same time, and wait until their processes have ended."""
        for name in names:
            self.members[name].process.terminate()
        for name in names:
            self.members[name].process.wait()
            self._release_all(name)

    def kill(self, name: str) -> None:
        """``kill -9`` a member."""
        moment = _now()
        self.members[name].process.kill()
        self._release_all(name, moment)

    def kill_all(self) -> None:
        """``kill -9`` all members that run."""
        for member in self.members.values():
            member.process.kill()

    # ---- waiting -------------------------------------------------------------------------------------------------

    def wait_until(self, what: str, condition: Callable[[], bool], seconds: float = LIMIT_SECONDS) -> None:
        """Wait until the members' reports fulfil a condition; fails at the first violation."""
        with self._changed:
            is_fulfilled = self._changed.wait_for(lambda: bool(self.violations) or condition(), seconds)
        assert not self.violations, "\n".join(self.violations)
        assert is_fulfilled, f"{self.group_id}: waited {seconds:g} s for: {what}\n{self.describe()}"

    def await_shared_by(self, *names: str, seconds: float = LIMIT_SECONDS) -> None:
        """Wait until these members alone own all partitions, evenly distributed."""
        self.wait_until(f"partitions owned by {', '.join(names)}", lambda: self._is_shared_by(names), seconds)

    def await_consumption(self, *names: str, records: int = 1) -> None:
        """Wait until each of these members has consumed ``records`` more than now."""
        before = {name: self.members[name].consumed for name in names}
        self.wait_until(
            f"records consumed by {', '.join(names)}",
            lambda: all(self.members[name].consumed >= before[name] + records for name in names),
        )

    def await_consumed(self, ends: Mapping[int, int]) -> None:
        """Wait until every record below these offsets has been consumed; offsets by partition."""
        self.wait_until(
            f"everything consumed up to {dict(ends)}",
            lambda: all(len(self.consumed[partition]) >= end for partition, end in ends.items()),
        )

    def await_committed(self, ends: Mapping[int, int]) -> None:
        """Wait until members have reported these commits; offsets by partition."""
        self.wait_until(f"{dict(ends)} committed", lambda: ends.items() <= self.committed.items())

    def _is_shared_by(self, names: Collection[str]) -> bool:
        owners = {name: member.owned for name, member in self.members.items() if member.owned}
        sizes = [len(self.members[name].owned) for name in names]
        partitions = [partition for owned in owners.values() for partition in owned]
        return (
            sorted(partitions) == list(range(self.partitions))
            and set(owners) <= set(names)
            and max(sizes) - min(sizes) <= 1
        )

    # ---- reports -------------------------------------------------------------------------------------------------

    @property
    def rebalances(self) -> int:
        """How many assignments all members have received, in total."""
        return sum(member.assignments for member in self.members.values())

    @property
    def owned(self) -> dict[str, set[int]]:
        """The partitions that each member reports as its own."""
        with self._changed:
            return {name: set(member.owned) for name, member in self.members.items()}

    def check_ownership(self) -> None:
        """Check that no two members ever reported the same partition as their own at the same time."""
        for partition, ownerships in self._ownerships.items():
            in_order = sorted(ownerships, key=lambda ownership: ownership.since)
            for first, second in pairwise(in_order):
                has_ended = first.until is not None and first.until <= second.since
                assert has_ended, f"partition {partition} had two owners: {first} and {second}"

    def check_everything_consumed(self, ends: Mapping[int, int]) -> None:
        """Check that no record below these offsets was skipped."""
        missing = {index: sorted(set(range(end)) - self.consumed[index])[:10] for index, end in ends.items()}
        assert not any(missing.values()), f"not consumed: {missing}"

    def check_no_duplicates(self) -> None:
        """Check that no record was delivered twice."""
        assert self.delivered == sum(map(len, self.consumed.values()))

    def describe(self) -> str:
        """Owners, commits and the end of each member's output, for the message of a failure."""
        lines = [f"{name} owns {sorted(member.owned)}" for name, member in self.members.items()]
        lines += [f"committed {self.committed}; consumed { {p: len(s) for p, s in self.consumed.items()} }"]
        return "\n".join(lines + [member.process.tail() for member in self.members.values()])

    def _on_line(self, name: str, line: str) -> None:
        if not line.startswith('{"timestamp"'):
            return
        event = json.loads(line)
        member = self.members[name]
        with self._changed:
            match event["name"]:
                case "partitions_assigned":
                    self._assigned(member, event)
                case "partitions_revoked":
                    member.revocations += 1
                    self._release(member, _indexes(event), event["timestamp"])
                case "records_consumed":
                    self._records(member, event)
                case "offsets_committed" if event["success"]:
                    self._offsets_committed(member, event)
                # A commit without an answer, as on a busy machine, is sent again.
                case "offsets_committed" if TIMED_OUT not in event["error"]:
                    self.refused_commits.append(f"{name}: {event['error']}")
                case "shutdown_complete":
                    self._release(member, set(member.owned), event["timestamp"])
            self._changed.notify_all()

    def _assigned(self, member: Member, event: Mapping[str, Any]) -> None:
        member.assignments += 1
        for partition in _indexes(event) - member.owned:
            self._ownerships[partition].append(Ownership(member.name, event["timestamp"]))
        member.owned |= _indexes(event)

    def _release(self, member: Member, partitions: Collection[int], moment: int) -> None:
        for partition in member.owned & set(partitions):
            last = [kept for kept in self._ownerships[partition] if kept.member == member.name][-1]
            last.until = moment
            member.positions.pop(partition, None)
        member.owned -= set(partitions)

    def _release_all(self, name: str, moment: int | None = None) -> None:
        with self._changed:
            self._release(self.members[name], set(self.members[name].owned), moment or _now())

    def _records(self, member: Member, event: Mapping[str, Any]) -> None:
        for span in event["partitions"]:
            partition, first, last = span["partition"], span["minOffset"], span["maxOffset"]
            if partition not in member.owned:
                self.violations.append(f"{member.name} consumed partition {partition}, which it does not own")
            if member.positions.get(partition, first) != first:
                self.violations.append(
                    f"{member.name} consumed {first} of partition {partition} after {member.positions[partition] - 1}"
                )
            member.positions[partition] = last + 1
            self.consumed[partition].update(range(first, last + 1))
        member.consumed += event["count"]
        self.delivered += event["count"]

    def _offsets_committed(self, member: Member, event: Mapping[str, Any]) -> None:
        for offset in event["offsets"]:
            self.committed[offset["partition"]] = offset["offset"]


def _indexes(event: Mapping[str, Any]) -> set[int]:
    return {partition["partition"] for partition in event["partitions"]}


def _now() -> int:
    return time.time_ns() // 1_000_000
