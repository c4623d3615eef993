"""A checkpoint that is older than what the last job had read: the job replays the requests since then as it was then.

Jobs run for minutes of simulated time, with restarts; their clients join, commit, fall silent and return. Then the
checkpoint is lost, and a job starts with a copy of some moment before.
"""

from collections.abc import Sequence

import msgspec
import pytest

from coordinator_logic import snapshot
from coordinator_logic.group import Group
from streaming.job.group_batch.starts import Start
from streaming.job.rows.records import Row
from tests.job.group_batch.simulated_job import STEP_MS, TOPICS, Checkpoint, Job, World
from tests.support.parts import classic

SEEDS = 60


class FirstRun:
    """A run with a copy of its checkpoint, and what the job wrote after it."""

    def __init__(self, seed: int) -> None:
        world = self.world = World(seed)
        world.start()
        world.run(world.chance.randrange(2_000, 20_000, STEP_MS))
        self.copy: Checkpoint | None = None
        self.announced: list[Start] = []
        before = 0
        for _ in range(world.chance.randint(1, 3)):
            if self.copy is None and world.chance.random() < 0.7:
                self.copy, before = world.job.copied(), len(world.job.rows)
            world.run(world.chance.randrange(1_000, 30_000, STEP_MS))
            world.run(world.chance.randrange(1_000, 12_000, STEP_MS), is_away=True)
            start = world.start()
            if self.copy is not None:
                self.announced.append(start)
        if self.copy is None:
            self.copy, before = world.job.copied(), len(world.job.rows)
        world.run(world.chance.randrange(1_000, 30_000, STEP_MS))
        # What was due has fired before the last request.
        world.describe()
        while world.job.checkpoint.read_until < len(world.job.log):
            world.now += STEP_MS
            world.job.batch(world.now)
        self.written = world.job.rows[before:]

    def continued(self, limit: int) -> Job:
        """A job that starts with the copy; its batches read at most ``limit`` requests."""
        assert self.copy is not None
        world, lost = self.world, self.world.job.checkpoint
        job = Job(world.job.log, self.copy, config=world.job.config, limit=limit)
        world.epoch += 1
        world.now += 60_000
        job.start(world.now, world.epoch, lost, tuple(self.announced))
        return job

    def replay(self, job: Job) -> None:
        """Run batches until all that the first run had read is read."""
        while job.checkpoint.read_until < self.world.job.checkpoint.read_until:
            self.world.now += STEP_MS
            job.batch(self.world.now)


def by_topic(rows: Sequence[Row], topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(row.key, row.value) for row in rows if row.topic == topic]


def group_of(job: Job) -> Group:
    assert job.checkpoint.state is not None
    return snapshot.decode(job.checkpoint.state.snapshot)


@pytest.mark.parametrize("limit", [10_000, 7])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_older_checkpoint_comes_to_the_same_answers_and_records_byte_for_byte(seed: int, limit: int) -> None:
    first = FirstRun(seed)
    job = first.continued(limit)
    first.replay(job)
    assert by_topic(job.rows, TOPICS.journal) == by_topic(first.written, TOPICS.journal)
    assert sorted(by_topic(job.rows, TOPICS.responses)) == sorted(by_topic(first.written, TOPICS.responses))
    before, after = group_of(first.world.job), group_of(job)
    assert (after.generation, after.state) == (before.generation, before.state)
    assert list(classic(after).members) == list(classic(before).members)
    assert after.offsets == before.offsets


def test_runs_have_rebalances_expulsions_restarts_and_commits() -> None:
    """The property above would hold of runs in which nothing happens."""
    kinds: dict[str, int] = {}
    for seed in range(SEEDS):
        for _, value in by_topic(FirstRun(seed).written, TOPICS.journal):
            entry = msgspec.json.decode(value or b"")
            kinds[entry["record"]["type"]] = kinds.get(entry["record"]["type"], 0) + 1
            if entry["record"]["type"] == "MemberRemoved" and entry["cause"]["type"] == "Timer":
                kinds["expelled"] = kinds.get("expelled", 0) + 1
    assert kinds["GenerationStarted"] > 2 * SEEDS
    assert kinds["expelled"] > SEEDS // 2
    assert kinds["OffsetsCommitted"] > 5 * SEEDS
