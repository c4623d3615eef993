"""The order of a group's records in a batch, with clocks that agree and with one that leaps."""

import random

import pytest

from streaming.job.group_batch.settings import Settings
from streaming.job.log_order import sort_records
from streaming.job.operator import GroupOperator
from streaming.job.rows.records import KafkaRecord
from tests.job.test_operator import CONFIG, NOW, TOPICS, values
from tests.support.request_events import commit, dumped


def record(timestamp: int, partition: int, offset: int, value: bytes = b"") -> KafkaRecord:
    return KafkaRecord(timestamp, partition, offset, b"g", value)


@pytest.mark.parametrize("leap_ms", [1, 60_000, 3_600_000])
def test_the_later_of_two_commits_counts_when_the_brokers_clock_leaps_between_them(leap_ms: int) -> None:
    first = record(NOW + leap_ms, 0, 7, dumped(commit("g", 1)))
    second = record(NOW, 0, 8, dumped(commit("g", 2)))
    operator = GroupOperator(Settings(TOPICS, 4, CONFIG))
    outcome = operator.outcome("g", [second, first], None, NOW + 1)
    changes = [entry["record"] for entry in values(outcome.rows, TOPICS.journal)]
    committed = [change["offsets"][0]["offset"] for change in changes if change["type"] == "OffsetsCommitted"]
    assert committed == [1, 2]


def test_records_of_several_partitions_are_ordered_by_their_times() -> None:
    in_order = [record(1, 0, 5), record(1, 1, 3), record(2, 0, 6), record(2, 0, 7), record(3, 1, 4)]
    for seed in range(20):
        shuffled = random.Random(seed).sample(in_order, len(in_order))
        sort_records(shuffled)
        assert shuffled == in_order


def test_a_leap_in_one_partition_leaves_the_order_of_the_others() -> None:
    leaping = [record(90, 0, 1), record(10, 0, 2), record(95, 0, 3)]
    steady = [record(10, 1, 1), record(20, 1, 2), record(92, 1, 3)]
    records = leaping + steady
    sort_records(records)
    assert records == [steady[0], steady[1], leaping[0], leaping[1], steady[2], leaping[2]]
