"""A job and its clients in simulated time: the job stops and starts, its clients join, commit, fall silent and return.

The log and the batches are played as a broker and Spark handle them; the operator is the real one. A checkpoint can be
copied and continued later, as after a restore.
"""

import json
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.replay import process_batch
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start, copied_epoch
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord, Row
from tests.support.request_events import dumped, envelope

BEGINNING = 1_700_000_000_000
TOPICS = TopicNames()
GROUP_ID = "g"
STEP_MS = 100
SESSION_MS = 6_000
HEARTBEAT_MS = 1_500


@dataclass
class Checkpoint:
    """What a restored job knows."""

    state: StateRow | None = None
    wake_at: int | None = None
    read_until: int = 0
    last_batch_time: int = 0
    starts: list[Start] = field(default_factory=list)


@dataclass
class Job:
    """The job on a log of one partition. ``limit`` is the most requests that a batch reads."""

    log: list[KafkaRecord]
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    config: CoordinatorConfig = field(default_factory=lambda: CoordinatorConfig(group_initial_rebalance_delay_ms=300))
    limit: int = 10_000
    rows: list[Row] = field(default_factory=list)
    checks: int = 0

    def start(self, now: int, epoch: int, lost: Checkpoint | None = None, announced: tuple[Start, ...] = ()) -> None:
        """Start with this epoch. ``lost`` is a newer checkpoint; ``announced`` are starts after the copy was made."""
        config = CoordinatorConfig(
            group_initial_rebalance_delay_ms=self.config.group_initial_rebalance_delay_ms,
            requests_partitions=1,
            late_answer_ms=2_000,
            job_epoch=epoch,
        )
        start = Start(
            started_at=now,
            config=config,
            read_until={0: self.checkpoint.read_until},
            replay_until={0: lost.read_until} if lost else {},
            replay_until_time=lost.last_batch_time if lost else 0,
            last_batch_time=self.checkpoint.last_batch_time,
            copied_epoch=copied_epoch(self.checkpoint.starts) if lost else 0,
        )
        self.checkpoint.starts += [*announced, start]

    def batch(self, now: int) -> None:
        """Run a batch at this time, if there is something to do; its output is appended after it."""
        checkpoint = self.checkpoint
        start = checkpoint.starts[-1]
        assert start.config is not None
        settings = Settings(TOPICS, 4, start.config, tuple(checkpoint.starts), has_deadline_checks=True)
        waiting = [record for record in self.log[checkpoint.read_until :] if record.timestamp <= now][: self.limit]
        if not waiting and not (checkpoint.wake_at is not None and checkpoint.wake_at < now):
            return
        outcome = process_batch(settings, GROUP_ID, waiting, checkpoint.state, now)
        checkpoint.state, checkpoint.wake_at = outcome.state, outcome.wake_at
        checkpoint.read_until += len(waiting)
        checkpoint.last_batch_time = now
        for row in outcome.rows:
            if row.topic == TOPICS.requests:
                self.checks += 1
                self.append(row.value or b"", now + STEP_MS // 2)
            else:
                self.rows.append(row._replace(measure=None))

    def append(self, value: bytes, at: int) -> None:
        """Append a request."""
        self.log.append(KafkaRecord(at, 0, len(self.log), GROUP_ID.encode(), value))

    def copied(self) -> Checkpoint:
        """A copy of the checkpoint."""
        return deepcopy(self.checkpoint)


class Client:
    """A member that follows the job's answers, and sometimes its own mind."""

    def __init__(self, number: int, chance: Random) -> None:
        self._chance = chance
        self._number = number
        self._member_id = ""
        self._generation = -1
        self._awaits: tuple[str, str] | None = None
        self._silent_until = 0
        self._next_heartbeat = 0
        self._committed = 0

    def act(self, job: Job, answers: dict[str, dict[str, Any]], now: int) -> None:
        """Read the answer to the last request if there is one, and send what comes next."""
        if now < self._silent_until:
            return
        if self._awaits is not None:
            api, correlation_id = self._awaits
            if correlation_id in answers:
                self._awaits = None
                self._understand(job, api, answers[correlation_id]["body"], now)
            return
        if not self._member_id or self._generation < 0:
            self._send(job, "JoinGroup", 3, join_body(self._member_id), now)
        elif self._chance.random() < 0.004:
            self._silent_until = now + self._chance.choice((2_000, 9_000, 20_000))
        elif self._chance.random() < 0.002:
            self._send(job, "LeaveGroup", 1, {"groupId": GROUP_ID, "memberId": self._member_id}, now)
        elif self._chance.random() < 0.02:
            self._committed += 1
            self._send(job, "OffsetCommit", 5, self._commit(), now)
        elif now >= self._next_heartbeat:
            body = {"groupId": GROUP_ID, "generationId": self._generation, "memberId": self._member_id}
            self._send(job, "Heartbeat", 3, body, now)
            self._next_heartbeat = now + HEARTBEAT_MS

    def _understand(self, job: Job, api: str, body: dict[str, Any], now: int) -> None:
        error = _error(body)
        if error is Error.NONE and api == "JoinGroup":
            self._member_id, self._generation = body["memberId"], body["generationId"]
            assignments = [{"memberId": member["memberId"], "assignment": ""} for member in body["members"]]
            sync = {
                "groupId": GROUP_ID,
                "generationId": self._generation,
                "memberId": self._member_id,
                "assignments": assignments,
            }
            self._send(job, "SyncGroup", 3, sync, now)
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID) or api == "LeaveGroup":
            self._member_id, self._generation = "", -1
        elif error is not Error.NONE:
            self._generation = -1

    def _commit(self) -> dict[str, Any]:
        partition = {"partitionIndex": self._number, "committedOffset": self._committed}
        return {
            "groupId": GROUP_ID,
            "generationIdOrMemberEpoch": self._generation,
            "memberId": self._member_id,
            "topics": [{"name": "payments", "partitions": [partition]}],
        }

    def _send(self, job: Job, api: str, version: int, body: dict[str, Any], now: int) -> None:
        request = envelope(api, version, body)
        job.append(dumped(request), now)
        self._awaits = (api, str(request["correlationId"]))


def _error(body: dict[str, Any]) -> Error:
    if "topics" in body:
        return Error(body["topics"][0]["partitions"][0]["errorCode"])
    return Error(body["errorCode"])


def join_body(member_id: str) -> dict[str, Any]:
    """The body of a member's JoinGroup."""
    return {
        "groupId": GROUP_ID,
        "sessionTimeoutMs": SESSION_MS,
        "rebalanceTimeoutMs": 10_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }


class World:
    """A job, its clients, and the time that passes."""

    def __init__(self, seed: int, clients: int = 3) -> None:
        self.chance = Random(seed)
        self.now = BEGINNING
        self.epoch = 0
        self._next_batch = BEGINNING
        self._batch_gap = Random(seed).choice((STEP_MS, 500, 1_500))
        # What no log tells is left out: joins that are unread at the end of the initial delay, and late answers.
        delay = 300 if self._batch_gap == STEP_MS else 0
        self.job = Job([], config=CoordinatorConfig(group_initial_rebalance_delay_ms=delay))
        self._answers: dict[str, dict[str, Any]] = {}
        self._rows_seen = 0
        self._clients = [Client(number, self.chance) for number in range(clients)]

    def start(self) -> Start:
        """Start the job with the next epoch."""
        self.epoch += 1
        self.job.start(self.now, self.epoch)
        return self.job.checkpoint.starts[-1]

    def describe(self) -> None:
        """Ask about the group from outside, so that the log has no gaps."""
        self.job.append(dumped(envelope("DescribeGroups", 4, {"groups": [GROUP_ID]})), self.now - STEP_MS // 4)

    def run(self, milliseconds: int, *, is_away: bool = False) -> None:
        """Let time pass. While the job is away, clients wait for answers, or send what needs none."""
        end = self.now + milliseconds
        while self.now < end:
            if not is_away and self.now >= self._next_batch:
                self.job.batch(self.now)
                self._next_batch = self.now + self._batch_gap
            self.now += STEP_MS
            if self.now % 1_000 == 0:
                self.describe()
            for row in self.job.rows[self._rows_seen :]:
                if row.topic == TOPICS.responses:
                    self._answers[(row.key or b"").decode()] = json.loads(row.value or b"")
            self._rows_seen = len(self.job.rows)
            for client in self._clients:
                client.act(self.job, self._answers, self.now - STEP_MS // 4)
