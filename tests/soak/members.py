"""The members of a soak: those that stay and must not notice anything, and those that come, commit, go and die."""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
)
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    GroupMember,
    IllegalGeneration,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.recovery.any_protocol import AnyProtocol

SESSION_TIMEOUT_MS = 30_000
CONSUMER_SESSION_TIMEOUT_MS = 60_000
"""Longer than a restart of the job on a slow machine: librdkafka gives its partitions up by its own clock."""

HEARTBEAT_INTERVAL_MS = 1_000
TOPIC = "soak"
LONGEST_LIFE_SECONDS = 60.0
LEAVING_SHARE = 0.5
"""How many of the members that go say so; the others just stop."""


class Findings:
    """What the members saw: counts of what they did, the seconds that it took, and what was wrong. Thread-safe."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self._seconds: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def count(self, what: str) -> None:
        """Count something that happened."""
        with self._lock:
            self.counts[what] += 1

    def took(self, what: str, seconds: float) -> None:
        """Count an answered request, and keep its time."""
        with self._lock:
            self.counts[what] += 1
            self._seconds.setdefault(what, []).append(seconds)

    def is_wrong(self, line: str) -> None:
        """Keep a line about an answer or event that should not have been."""
        with self._lock:
            self.wrong.append(line)

    def take_seconds(self) -> dict[str, list[float]]:
        """Take the times that were kept since the last call."""
        with self._lock:
            taken, self._seconds = self._seconds, {}
            return taken


class StayingGroup:
    """A group over topics whose members stay, each on a thread of its own; its first member commits all the time.

    Once it has settled, no member may get a new generation, and every acknowledged commit must be readable.
    """

    def __init__(self, client: CoordinatorClient, group_id: str, members: int, findings: Findings) -> None:
        self.group_id = group_id
        self._client = client
        self._findings = findings
        self._events: list[MemberEvent] = []
        self._is_settled = False
        config = MemberConfig(
            group_id=group_id,
            protocol_type="soak",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        )
        self._members = [GroupMember(client, AnyProtocol(), config, self._observe) for _ in range(members)]

    @property
    def is_settled(self) -> bool:
        """Whether all members are assigned in one generation."""
        generations = {member.generation.generation_id for member in self._members}
        assigned = {event.generation for event in tuple(self._events) if event.kind is MemberEventKind.ASSIGNED}
        return len(generations) == 1 and {member.generation for member in self._members} <= assigned

    def works(self) -> list[Any]:
        """The functions for threads, each with the event that ends it as its argument."""
        return [lambda ended, member=member: self._poll(member, ended) for member in self._members] + [self._commit]

    def settle(self) -> None:
        """From now on until :meth:`release`, any further event of a member is wrong."""
        self._is_settled = True

    def release(self) -> None:
        """From now on, members may leave."""
        self._is_settled = False

    def _observe(self, event: MemberEvent) -> None:
        self._events.append(event)
        if self._is_settled:
            self._findings.is_wrong(f"{self.group_id}: {event}")

    def _poll(self, member: GroupMember, ended: threading.Event) -> None:
        while not ended.wait(0.2):
            member.poll(0.5)
        member.close()

    def _commit(self, ended: threading.Event) -> None:
        offset = 0
        while not ended.wait(0.5):
            generation = self._members[0].generation
            if not self._is_settled:
                continue
            offset += 1
            commit = OffsetCommitRequest(
                self.group_id,
                [TopicToCommit("payments", [PartitionToCommit(0, offset)])],
                generation.generation_id,
                generation.member_id,
            )
            # A commit that is not acknowledged may be lost.
            with suppress(CoordinatorError):
                began = time.monotonic()
                response = self._client.offset_commit(commit)
                self._findings.took("commit", time.monotonic() - began)
                error = response.topics[0].partitions[0].error_code
                if error != Error.NONE:
                    self._findings.is_wrong(f"{self.group_id}: commit of {offset} answered {Error(error).name}")
                self._read_back(offset)

    def _read_back(self, offset: int) -> None:
        (fetched,) = self._client.offset_fetch([GroupToFetch(self.group_id)]).groups
        if fetched.error_code != Error.NONE:
            return
        committed = fetched.topics[0].partitions[0].committed_offset if fetched.topics else None
        if committed != offset:
            self._findings.is_wrong(f"{self.group_id}: committed {offset}, read {committed}")


class StayingConsumer:
    """A consumer of librdkafka behind the gateway that stays: it may lose its partitions never once it has them."""

    def __init__(self, bootstrap_servers: str, group_id: str, findings: Findings) -> None:
        self._group_id = group_id
        self._findings = findings
        self._config = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group_id,
            "session.timeout.ms": CONSUMER_SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "enable.auto.commit": False,
            "log_level": 0,
            # A gateway that was killed is back within seconds.
            "reconnect.backoff.max.ms": 1_000,
        }
        self.has_partitions = threading.Event()
        self._is_settled = False

    def settle(self) -> None:
        """From now on until :meth:`release`, a rebalance is wrong."""
        self._is_settled = True

    def release(self) -> None:
        """From now on, the others may leave."""
        self._is_settled = False

    def run(self, ended: threading.Event) -> None:
        """Poll and commit until the end."""
        consumer = Consumer(self._config)
        consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)
        try:
            offset = 0
            while not ended.is_set():
                consumer.poll(0.5)
                if self._is_settled:
                    offset += 1
                    with suppress(Exception):
                        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=True)
        finally:
            consumer.close()

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._findings.count("assignments through the gateway")
        if partitions:
            self.has_partitions.set()

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_settled:
            self._findings.is_wrong(f"{self._group_id} behind the gateway: {len(partitions)} partitions were revoked")


class PassingMember:
    """Lives of members one after the other: each joins, sends heartbeats, commits, and then leaves or just stops."""

    def __init__(self, client: CoordinatorClient, groups: Sequence[str], findings: Findings, seed: int) -> None:
        self._client = client
        self._groups = groups
        self._findings = findings
        self._random = random.Random(seed)
        self._member_id = ""

    def run(self, ended: threading.Event) -> None:
        """Live until the end."""
        while not ended.is_set():
            with suppress(CoordinatorError):
                self._live(self._random.choice(self._groups), ended)
            ended.wait(self._random.uniform(0.1, 5.0))

    def _live(self, group_id: str, ended: threading.Event) -> None:
        until = time.monotonic() + self._random.uniform(5.0, LONGEST_LIFE_SECONDS)
        self._member_id = ""
        while time.monotonic() < until and not ended.is_set():
            try:
                self._stay(group_id, self._join(group_id), until, ended)
            except (RebalanceInProgress, IllegalGeneration):
                self._findings.count("rejoined")
            except UnknownMemberId:
                self._member_id = ""
        if self._member_id and self._random.random() < LEAVING_SHARE:
            leaving = LeaveGroupRequest(group_id, members=[LeavingMember(self._member_id)])
            self._client.leave_group(leaving)
            self._findings.count("left")
        else:
            self._findings.count("died")

    def _join(self, group_id: str) -> int:
        """Join with the member id that it has, and return the generation."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=6_000,
            rebalance_timeout_ms=10_000,
            member_id=self._member_id,
            protocol_type="soak",
            protocols=[Protocol("any", b"metadata")],
        )
        try:
            joined = self._client.join_group(request)
        except MemberIdRequired as required:
            if not isinstance(required.body, JoinGroupResponse):
                raise
            self._member_id = required.body.member_id
            return self._join(group_id)
        self._member_id = joined.member_id
        self._findings.count("joined")
        assignments = [MemberAssignment(member.member_id, b"some") for member in joined.members]
        self._client.sync_group(
            SyncGroupRequest(
                group_id,
                joined.generation_id,
                joined.member_id,
                protocol_type=joined.protocol_type,
                protocol_name=joined.protocol_name,
                assignments=assignments,
            )
        )
        return joined.generation_id

    def _stay(self, group_id: str, generation_id: int, until: float, ended: threading.Event) -> None:
        while time.monotonic() < until and not ended.wait(HEARTBEAT_INTERVAL_MS / 1000):
            began = time.monotonic()
            self._client.heartbeat(HeartbeatRequest(group_id, generation_id, self._member_id))
            self._findings.took("heartbeat", time.monotonic() - began)
