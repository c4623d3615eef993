"""Which starts the workers need with every batch, and how far back an open batch may have been planned."""

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.lifecycle.starts import epoch_of_batch, keyed_partitions, needed_starts
from streaming.job.topics.layout import Partitions


def start(epoch: int, last_batch_time: int, open_batch_epoch: int = 0) -> Start:
    return Start(
        started_at=1_000 * epoch,
        config=CoordinatorConfig(job_epoch=epoch),
        last_batch_time=last_batch_time,
        open_batch_time=last_batch_time if open_batch_epoch else 0,
        open_batch_epoch=open_batch_epoch,
    )


def test_a_batch_that_stays_open_over_many_starts_keeps_the_configuration_that_it_was_planned_with() -> None:
    known = [start(1, 0)]
    for epoch in range(2, 12):
        planner = epoch_of_batch(known, 1_500)
        assert planner == 1
        now = start(epoch, 1_500, planner)
        needed = (*needed_starts(known, now), now)
        assert len(needed) <= 4
        settings = Settings(TopicNames(), 4, now.config or CoordinatorConfig(), needed)
        assert settings.at(1_500).config.job_epoch == 1
        assert settings.at(9_999_999).config.job_epoch == epoch
        known.append(now)


def test_a_complete_batch_needs_only_the_last_starts() -> None:
    known = [start(epoch, 1_000 * epoch) for epoch in range(1, 9)]
    now = start(9, 8_500)
    assert needed_starts(known, now) == known[-2:]


def test_a_start_keeps_the_names_that_earlier_releases_have_written() -> None:
    recorded = b'{"startedAt":7,"readUntil":{"0":3},"livedUntil":{"0":5},"livedUntilTime":6,"copiedEpoch":2}'
    read = msgspec.json.decode(recorded, type=Start)
    assert (read.replay_until, read.replay_until_time) == ({0: 5}, 6)
    assert msgspec.json.encode(read) == recorded
    assert msgspec.json.encode(Start(started_at=7)) == b'{"startedAt":7}'


def test_keys_stay_in_the_partitions_that_a_topic_had_at_first() -> None:
    now = Partitions(requests=1, responses=8, directory=3, journal=8)
    assert keyed_partitions([], now) == now
    of_earlier_release = start(1, 0)
    assert keyed_partitions([of_earlier_release], now) == now
    first = msgspec.structs.replace(start(2, 0), journal_partitions=4, directory_partitions=1)
    later = msgspec.structs.replace(start(3, 0), journal_partitions=8, directory_partitions=3)
    kept = keyed_partitions([of_earlier_release, first, later], now)
    assert (kept.journal, kept.directory) == (4, 1)


def test_a_topic_that_was_created_again_with_fewer_partitions_uses_those() -> None:
    now = Partitions(requests=1, responses=8, directory=1, journal=2)
    first = msgspec.structs.replace(start(2, 0), journal_partitions=4, directory_partitions=3)
    kept = keyed_partitions([first], now)
    assert (kept.journal, kept.directory) == (2, 1)
