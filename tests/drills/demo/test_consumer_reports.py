"""What the demo concludes from its consumers' reports."""

import pytest

from streaming.drills.demo.consumer_process import ConsumerReport
from streaming.drills.demo.group_consumers import ConsumerReports, committed_everything


def owns(generation: int, *partitions: int) -> ConsumerReport:
    return ConsumerReport("owns", generation, list(partitions))


def consumed(partition: int, first: int, last: int) -> ConsumerReport:
    return ConsumerReport("consumed", partitions=[partition], first=first, last=last)


def test_partitions_are_shared_once_all_live_consumers_have_even_shares_in_one_generation() -> None:
    reports = ConsumerReports()
    reports.add("a", owns(1, 0, 1, 2))
    assert reports.shared_by("a", partitions=3)
    reports.add("b", owns(2, 1))
    assert not reports.shared_by("a", "b", partitions=3)
    reports.add("a", owns(2, 0, 2))
    assert reports.shared_by("a", "b", partitions=3)
    assert not reports.shared_by("a", partitions=3)
    reports.add("b", ConsumerReport("closed"))
    assert not reports.shared_by("a", partitions=3)
    assert reports.assignments == 3


def test_a_record_that_nobody_consumed_is_missing_and_one_that_came_twice_is_no_failure() -> None:
    reports = ConsumerReports()
    reports.add("a", consumed(0, 0, 4))
    reports.add("b", consumed(0, 3, 5))
    assert reports.has_consumed({0: 6})
    assert reports.every_record_consumed({0: 6}).detail == "records: 6, repeated deliveries: 2"
    assert not reports.every_record_consumed({0: 6, 1: 1}).passed
    assert not ConsumerReports().every_record_consumed({0: 0}).passed


def test_two_owners_of_a_partition_in_one_generation_are_found_also_after_the_fact() -> None:
    reports = ConsumerReports()
    reports.add("a", owns(1, 0, 1))
    reports.add("a", ConsumerReport("revoked", 1, [0, 1]))
    reports.add("b", owns(2, 0, 1))
    assert reports.one_owner_per_generation().passed
    reports.add("c", owns(2, 1))
    assert reports.one_owner_per_generation().detail == "generation 2: b and c both own [1]"


@pytest.mark.parametrize(("committed", "passed"), [({0: 5}, True), ({0: 4}, False), ({}, False)])
def test_every_committed_offset_must_be_the_end(committed: dict[int, int], passed: bool) -> None:
    assert committed_everything(committed, {0: 5}).passed == passed


def test_a_report_reads_as_a_sentence() -> None:
    assert owns(4, 3, 4).described("consumer-1") == "consumer-1 owns 3 4 in generation 4"
    assert owns(-1).described("librdkafka") == "librdkafka owns none"
    assert ConsumerReport("lost", 4, [1]).described("consumer-1") == "consumer-1 loses 1"
