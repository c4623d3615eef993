"""A backlog that is read in pieces: nobody who sends heartbeats is expelled, whoever has stopped is.

The log, the limit of a batch and its share for each partition are played as Spark and a broker handle them, and the
operator is the real one. :mod:`tests.job.backlog.test_in_job` does the same with Spark.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.partitioning import partition_for
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.support.parts import classic
from tests.support.request_events import commit, dumped, envelope

START = 1_700_000_000_000
TOPICS = TopicNames()
SESSION_MS = 6_000
HEARTBEAT_MS = 2_000


@dataclass
class SlowJob:
    """A job whose batches read at most ``limit`` requests and take ``batch_ms``, on a log of so many partitions."""

    partitions: int
    limit: int
    batch_ms: int
    has_deadline_checks: bool = True
    now: int = START
    starts: list[int] = field(default_factory=lambda: [START])
    log: dict[int, list[KafkaRecord]] = field(default_factory=lambda: defaultdict(list))
    read: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    groups: dict[str, StateRow] = field(default_factory=dict)
    wake_at: dict[str, int] = field(default_factory=dict)
    responses: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    checks: int = 0
    live: "list[Client]" = field(default_factory=list)

    def append(self, group_id: str, request: dict[str, Any] | bytes, at: int) -> None:
        """Append a request to the group's partition at a time that is not earlier than the partition's last record."""
        partition = partition_for(group_id, self.partitions)
        records = self.log[partition]
        assert not records or records[-1].timestamp <= at
        value = request if isinstance(request, bytes) else dumped(request)
        records.append(KafkaRecord(at, partition, len(records), group_id.encode(), value))

    def send_heartbeats(self, since: int, until: int) -> None:
        """Append the heartbeats of the live clients that are due in the interval, in order."""
        due = [
            (at, client)
            for client in self.live
            for at in range(since - since % HEARTBEAT_MS + client.phase_ms, until, HEARTBEAT_MS)
            if at >= since
        ]
        for at, client in sorted(due):
            self.append(client.group_id, heartbeat(client), at)

    @property
    def backlog(self) -> int:
        """How many requests wait."""
        return sum(len(records) - self.read[partition] for partition, records in self.log.items())

    def batch(self) -> None:
        """Run a batch at the present time; its output is appended at its end, which is the present time then."""
        config = CoordinatorConfig(
            group_initial_rebalance_delay_ms=0, requests_partitions=self.partitions, late_answer_ms=2_000
        )
        starts = tuple(Start(started_at=start) for start in self.starts)
        settings = Settings(TOPICS, 4, config, starts=starts, has_deadline_checks=self.has_deadline_checks)
        batch_time = self.now
        data = self._take()
        timed_out = [group_id for group_id, wake_at in self.wake_at.items() if wake_at < batch_time]
        self.now += self.batch_ms
        self.send_heartbeats(batch_time, self.now)
        # Spark calls the groups with data first, and of the others those whose timeout has passed.
        for group_id in [*data, *(group_id for group_id in timed_out if group_id not in data)]:
            records = sorted(data.get(group_id, ()), key=lambda record: record[:3])
            outcome = process(settings, group_id, records, self.groups.get(group_id), batch_time)
            assert process(settings, group_id, records, self.groups.get(group_id), batch_time) == outcome
            self._keep(group_id, outcome.state, outcome.wake_at)
            for row in outcome.rows:
                if row.topic == TOPICS.requests:
                    assert row.partition == partition_for(group_id, self.partitions)
                    self.checks += 1
                    self.append(group_id, row.value or b"", self.now)
                elif row.topic == TOPICS.responses:
                    self.responses.append(json.loads(row.value or b""))
                elif row.topic == TOPICS.journal:
                    record = json.loads(row.value or b"")["record"]
                    if record["type"] == "MemberRemoved":
                        self.removed.append(record["memberId"])

    def _take(self) -> dict[str, list[KafkaRecord]]:
        """What the batch reads: each partition's share of the limit, at least one record (``rateLimit`` in Spark)."""
        waiting = {partition: len(records) - self.read[partition] for partition, records in self.log.items()}
        total = sum(waiting.values())
        data: dict[str, list[KafkaRecord]] = defaultdict(list)
        for partition, size in waiting.items():
            share = min(size, max(1, self.limit * size // total)) if size else 0
            first = self.read[partition]
            for record in self.log[partition][first : first + share]:
                data[(record.key or b"").decode()].append(record)
            self.read[partition] = first + share
        return data

    def _keep(self, group_id: str, state: StateRow | None, wake_at: int | None) -> None:
        if state is None:
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = state
        self.wake_at.pop(group_id, None)
        if wake_at is not None:
            self.wake_at[group_id] = max(wake_at, self.now - self.batch_ms + 1)

    def members(self) -> set[str]:
        """The members of all groups."""
        return {member for row in self.groups.values() for member in classic(snapshot.decode(row.snapshot)).members}


class Client(NamedTuple):
    """A member of a group with its generation; its heartbeats start ``phase_ms`` after a multiple of the interval."""

    group_id: str
    member_id: str
    phase_ms: int


def join(group_id: str) -> dict[str, Any]:
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": SESSION_MS,
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    return envelope("JoinGroup", 3, body)


def heartbeat(client: Client) -> dict[str, Any]:
    body = {"groupId": client.group_id, "generationId": 1, "memberId": client.member_id}
    return envelope("Heartbeat", 3, body)


def with_groups(job: SlowJob, count: int) -> list[Client]:
    """Form groups of one member."""
    for number in range(count):
        job.append(f"group-{number}", join(f"group-{number}"), job.now)
    job.batch()
    clients = []
    for number, answer in enumerate(sorted(job.responses, key=lambda answer: answer["groupId"])):
        body = answer["body"]
        clients.append(Client(answer["groupId"], body["memberId"], number * 137 % HEARTBEAT_MS))
        assignment = [{"memberId": body["memberId"], "assignment": ""}]
        sync = {
            "groupId": answer["groupId"],
            "generationId": 1,
            "memberId": body["memberId"],
            "assignments": assignment,
        }
        job.append(answer["groupId"], envelope("SyncGroup", 3, sync), job.now)
    job.batch()
    assert job.members() == {client.member_id for client in clients}
    return clients


def outage_of(job: SlowJob, milliseconds: int) -> None:
    """Stop the job for a time in which the live clients send heartbeats, then start it."""
    since, job.now = job.now, job.now + milliseconds
    job.send_heartbeats(since, job.now)
    job.starts.append(job.now)


def work_off(job: SlowJob) -> int:
    """Run batches until one reads all that waits; returns their number."""
    batches = 0
    while job.backlog > job.limit:
        job.batch()
        batches += 1
        assert batches < 500
    job.batch()
    return batches + 1


@pytest.mark.parametrize("partitions", [1, 4])
def test_live_members_keep_their_groups_while_a_backlog_takes_longer_than_their_sessions(partitions: int) -> None:
    job = SlowJob(partitions, limit=150, batch_ms=3_000)
    clients = with_groups(job, 40)
    gone, job.live = clients[:4], clients[4:]
    outage_of(job, 120_000)
    assert work_off(job) * job.batch_ms > 3 * SESSION_MS, "the backlog takes longer than a session"
    for _ in range(4 * SESSION_MS // job.batch_ms):
        job.batch()
    assert sorted(job.removed) == sorted(client.member_id for client in gone)
    assert job.members() == {client.member_id for client in job.live}
    assert {answer["errorCode"] for answer in job.responses if answer["api"] == "Heartbeat"} == {0}


def test_without_checks_the_same_backlog_expels_live_members() -> None:
    """The danger that the test above is about: the time of a batch passes deadlines whose heartbeats wait unread."""
    job = SlowJob(4, limit=150, batch_ms=3_000, has_deadline_checks=False)
    job.live = with_groups(job, 40)
    outage_of(job, 120_000)
    work_off(job)
    assert len(job.removed) > len(job.live) / 2


def test_a_backlog_of_another_group_expels_nobody() -> None:
    """Its requests fill whole batches, in which no other group reads anything."""
    job = SlowJob(1, limit=100, batch_ms=3_000)
    job.live = with_groups(job, 5)
    for _ in range(2_000):
        job.append("busy", dumped(commit("busy", 1)), job.now)
    assert work_off(job) * job.batch_ms > 3 * SESSION_MS
    assert job.removed == []


def test_a_member_whose_join_waited_in_the_backlog_has_a_full_session_from_its_answer() -> None:
    job = SlowJob(1, limit=100, batch_ms=1_000)
    job.append("g", join("g"), job.now)
    for _ in range(1_000):
        job.append("busy", dumped(commit("busy", 1)), job.now)
    job.append("h", join("h"), job.now)
    outage_of(job, 60_000)
    while not any(answer["groupId"] == "h" for answer in job.responses):
        job.batch()
    (answer,) = (answer for answer in job.responses if answer["groupId"] == "h")
    client = Client("h", answer["body"]["memberId"], 0)
    for _ in range(4):
        job.batch()
    job.append("h", heartbeat(client), job.now)
    for _ in range(4):
        job.batch()
    assert client.member_id in job.members()
    for _ in range(10):
        job.batch()
    assert job.members() == set()


def test_a_group_asks_for_one_check_at_a_time_and_a_lost_one_is_repeated() -> None:
    job = SlowJob(1, limit=1_000, batch_ms=500)
    with_groups(job, 1)
    while not job.checks:
        job.batch()
    lost = job.log[0].pop()
    assert b"DeadlineCheck" in (lost.value or b"")
    asked_at = job.now
    while job.checks == 1:
        job.batch()
    assert 60_000 <= job.now - asked_at <= 62_000
    while job.members():
        job.batch()
    assert (job.checks, len(job.removed)) == (2, 1)


def test_a_check_in_another_partition_than_the_groups_is_no_evidence() -> None:
    job = SlowJob(4, limit=1_000, batch_ms=500)
    (client,) = with_groups(job, 1)
    while not job.checks:
        job.batch()
    own = partition_for(client.group_id, 4)
    check = job.log[own].pop()
    other = (own + 1) % 4
    job.log[other].append(KafkaRecord(job.now, other, len(job.log[other]), check.key, check.value))
    job.batch()
    assert job.members() == {client.member_id}
