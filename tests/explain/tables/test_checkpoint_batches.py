"""Which batch of a checkpoint shows the groups as of a time."""

import pytest

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.errors import CannotRun
from streaming.explain.tables.checkpoint_batches import CompleteBatch, batch_at
from streaming.job.group_batch.starts import Start
from streaming.job.spark_internals.checkpoint_layout.start_check import UnreadableFile
from streaming.job.state_stores import STATE_STORES

STARTS = [
    Start(started_at=0, config=CoordinatorConfig(job_epoch=1, expiry_allowance_ms=500)),
    Start(started_at=25_000, config=CoordinatorConfig(job_epoch=2, expiry_allowance_ms=500)),
]
PROVIDER = STATE_STORES["memory"]["spark.sql.streaming.stateStore.providerClass"]


def plan(number: int) -> str:
    """A batch of every ten seconds; those before the third are deleted."""
    if number < 2:
        raise UnreadableFile("gone")
    conf = f'{{"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.stateStore.providerClass": "{PROVIDER}"}}'
    return f'v1\n{{"batchTimestampMs": {number * 10_000}, "conf": {conf}}}\n{{"group-requests": {{"0": {number}}}}}'


def found(time: int | None, topic: str = "group-requests") -> CompleteBatch | None:
    return batch_at(range(5), plan, STARTS, topic, time)


def test_without_a_time_it_is_the_newest() -> None:
    assert found(None) == CompleteBatch(4, 40_000, {0: 4}, 2, "memory")


@pytest.mark.parametrize(("time", "number"), [(40_500, 4), (40_499, 3), (30_500, 3), (30_499, 2), (20_500, 2)])
def test_no_change_of_it_can_be_later_than_the_time(time: int, number: int) -> None:
    batch = found(time)
    assert batch is not None
    assert batch.number == number


def test_it_has_the_epoch_of_the_job_that_ran_it() -> None:
    batch = found(25_000)
    assert batch is not None
    assert batch.epoch == 1


def test_there_is_none_before_those_that_spark_keeps() -> None:
    assert found(20_499) is None


def test_a_checkpoint_of_another_topic_is_refused() -> None:
    with pytest.raises(CannotRun, match="topic-prefix"):
        found(None, "other-requests")
