"""A replay at the seams between starts, moment by moment: what an earlier job left undone, and who was renewed."""

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from streaming.job.group_batch.replay import process_batch
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.lifecycle.starts import epoch_of_batch, needed_starts
from tests.job.group_batch.simulated_job import BEGINNING, GROUP_ID, TOPICS, Checkpoint, Job, join_body
from tests.support.parts import classic
from tests.support.request_events import dumped, envelope


class Pair:
    """Two members of a stable group, and a copy of the checkpoint from the first second. Times are in milliseconds."""

    def __init__(self) -> None:
        self.job = Job([])
        self.job.start(BEGINNING, 1)
        joins = [self.send("JoinGroup", 3, join_body(""), at) for at in (100, 110)]
        for time in (200, 700, 800):
            self.batch(time)
        self.first, self.second = (self.answer(join)["memberId"] for join in joins)
        self.generation = self.answer(joins[0])["generationId"]
        for member_id in (self.first, self.second):
            body = {"groupId": GROUP_ID, "generationId": self.generation, "memberId": member_id, "assignments": []}
            self.send("SyncGroup", 3, body, 900)
        self.batch(1_000)
        self.copy = self.job.copied()
        self.written = len(self.job.rows)

    def send(self, api: str, version: int, body: dict[str, Any], at: int) -> str:
        request = envelope(api, version, body)
        self.job.append(dumped(request), BEGINNING + at)
        return str(request["correlationId"])

    def heartbeat(self, member_id: str, at: int) -> str:
        body = {"groupId": GROUP_ID, "generationId": self.generation, "memberId": member_id}
        return self.send("Heartbeat", 3, body, at)

    def commit(self, member_id: str, offset: int, at: int) -> str:
        topics = [{"name": "payments", "partitions": [{"partitionIndex": 0, "committedOffset": offset}]}]
        body = {
            "groupId": GROUP_ID,
            "generationIdOrMemberEpoch": self.generation,
            "memberId": member_id,
            "topics": topics,
        }
        return self.send("OffsetCommit", 5, body, at)

    def batch(self, time: int) -> None:
        self.job.batch(BEGINNING + time)

    def answer(self, correlation_id: str, job: Job | None = None) -> dict[str, Any]:
        rows = (job or self.job).rows
        (value,) = (row.value for row in rows if row.topic == TOPICS.responses and row.key == correlation_id.encode())
        body: dict[str, Any] = json.loads(value or b"")["body"]
        return body

    def leave_a_check_unread(self) -> None:
        """The first member falls silent; the job asks for a check when its session has ended, and is killed."""
        self.heartbeat(self.first, 1_100)
        for time in range(2_000, 6_000, 1_000):
            self.heartbeat(self.second, time)
        self.batch(6_000)
        before = self.job.checks
        # The session ended at 7.1 s.
        self.batch(8_500)
        assert self.job.checks == before + 1

    def output(self, job: Job, since: int = 0) -> list[tuple[str, bytes | None]]:
        return [(row.topic, row.value) for row in job.rows[since:] if row.topic in (TOPICS.journal, TOPICS.responses)]


def members(checkpoint: Checkpoint) -> int:
    assert checkpoint.state is not None
    return len(classic(snapshot.decode(checkpoint.state.snapshot)).members)


@pytest.mark.parametrize("limit", [10_000, 3, 1])
def test_a_session_that_a_later_start_has_renewed_does_not_end_in_the_replay(limit: int) -> None:
    pair = Pair()
    pair.leave_a_check_unread()
    pair.job.start(BEGINNING + 20_000, 2)
    start = pair.job.checkpoint.starts[-1]
    for time in (20_100, 21_000):
        pair.heartbeat(pair.second, time)
        pair.batch(time + 100)
    pair.heartbeat(pair.first, 22_000)
    pair.batch(22_100)
    committed = pair.commit(pair.first, 219, 23_000)
    pair.batch(23_100)
    assert pair.answer(committed)["topics"][0]["partitions"][0]["errorCode"] == Error.NONE
    lost = pair.job.checkpoint
    replaying = Job(pair.job.log, pair.copy, limit=limit)
    replaying.start(BEGINNING + 60_000, 3, lost, (start,))
    time = BEGINNING + 60_100
    while replaying.checkpoint.read_until < lost.read_until:
        replaying.batch(time)
        time += 100
    assert sorted(pair.output(replaying)) == sorted(pair.output(pair.job, pair.written))
    assert members(replaying.checkpoint) == 2


def test_after_a_replay_every_member_has_a_full_session_for_as_long_as_the_job_runs() -> None:
    pair = Pair()
    pair.leave_a_check_unread()
    restored = Job(pair.job.log, pair.copy)
    restored.start(BEGINNING + 20_000, 2, pair.job.checkpoint)
    pair.job = restored
    for time in (20_100, 21_000, 22_000):
        pair.heartbeat(pair.second, time)
        pair.batch(time + 100)
    heartbeat = pair.heartbeat(pair.first, 23_000)
    pair.batch(23_100)
    assert pair.answer(heartbeat)["errorCode"] == Error.NONE


def test_a_member_that_a_batch_has_expelled_which_was_not_announced_is_back_with_a_full_session() -> None:
    pair = Pair()
    pair.leave_a_check_unread()
    announced = pair.job.copied()
    pair.batch(9_000)
    assert members(pair.job.checkpoint) == 1
    restored = Job(pair.job.log, pair.copy)
    restored.start(BEGINNING + 20_000, 2, announced)
    pair.job = restored
    for time in (20_100, 21_000, 22_000):
        pair.heartbeat(pair.second, time)
        pair.batch(time + 100)
    heartbeat = pair.heartbeat(pair.first, 25_500)
    pair.batch(25_600)
    assert pair.answer(heartbeat)["errorCode"] == Error.NONE
    assert members(restored.checkpoint) == 2


def test_the_open_batch_of_a_replay_runs_again_with_the_starts_that_it_replayed() -> None:
    pair = Pair()
    lost_starts = []
    for number, epoch in enumerate((2, 3)):
        pair.commit(pair.first, epoch, 2_000 + 20_000 * number)
        pair.batch(2_100 + 20_000 * number)
        pair.job.start(BEGINNING + 20_000 * epoch, epoch)
        lost_starts.append(pair.job.checkpoint.starts[-1])
    pair.commit(pair.first, 3, 60_100)
    pair.batch(60_200)
    lost, time = pair.job.checkpoint, BEGINNING + 80_100
    replaying = Job(pair.job.log, deepcopy(pair.copy))
    replaying.start(BEGINNING + 80_000, 4, lost, tuple(lost_starts))
    known = replaying.checkpoint.starts
    next_start = Start(
        started_at=BEGINNING + 90_000,
        config=msgspec.structs.replace(known[-1].config or replaying.config, job_epoch=5),
        last_batch_time=time,
        open_batch_time=time,
        open_batch_epoch=epoch_of_batch(known, time),
        read_until={0: lost.read_until},
        replay_until={0: lost.read_until},
    )
    assert not next_start.replays
    outputs = []
    for starts in (tuple(known), (*needed_starts(known, next_start), next_start)):
        assert starts[-1].config is not None
        settings = Settings(TOPICS, 4, starts[-1].config, starts, has_deadline_checks=True)
        records = pair.job.log[pair.copy.read_until : lost.read_until]
        outputs.append(process_batch(settings, GROUP_ID, records, pair.copy.state, time))
    assert outputs[0] == outputs[1]
    assert len(outputs[0].rows) > len(lost_starts)
