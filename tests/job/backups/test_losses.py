"""What a restore or a rebuild says of what is lost, and from where a rebuilt checkpoint reads; without brokers."""

import pytest

from coordinator_logic.records import GroupDirectoryEntry
from streaming.job.backups.losses import LossReport, RestorePoint, restore_losses
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroup
from streaming.job.backups.rebuild.report import SHOWN, RebuildReport
from streaming.job.backups.rebuild.start_positions import cut_partitions, start_positions
from streaming.job.backups.topic_reach import PartitionReach
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup
from streaming.journal.folded_group import Known

MINUTE_MS = 60_000
NOON = 1_795_435_200_000
WHOLE = {0: PartitionReach(0, 900, NOON - 60 * MINUTE_MS)}


def losses(
    read: dict[int, int],
    requests: dict[int, PartitionReach],
    journal: dict[int, PartitionReach] = WHOLE,
    *,
    is_another_topic: bool = False,
) -> LossReport:
    return restore_losses("requests", RestorePoint(read, NOON), requests, journal, is_another_topic=is_another_topic)


def test_nothing_is_lost_while_the_log_begins_before_the_backups_end() -> None:
    found = losses({0: 100, 1: 7}, {0: PartitionReach(100, 150, NOON), 1: PartitionReach(0, 7, NOON)})
    assert found.is_lossless
    assert found.lines == [
        "requests still has every request since the backup, of 2026-11-23 12:00:00+00:00",
        "requests has 50 requests after the backup, which the job reads after its start",
    ]


def test_deleted_requests_are_counted_with_their_time_and_what_the_journal_can_do() -> None:
    requests = {0: PartitionReach(140, 150, NOON + 5 * MINUTE_MS), 1: PartitionReach(9, 9, None)}
    found = losses({0: 100, 1: 7}, requests)
    assert not found.is_lossless
    assert found.lines == [
        "requests has lost 42 requests since the backup, to retention or a deletion (partition 0: offsets 100 to 139, "
        "partition 1: offsets 7 to 8): their changes are missing after the restore",
        "partition 0: requests from 2026-11-23 12:00:00+00:00, the time of the backup's batch, until "
        "2026-11-23 12:05:00+00:00 are lost",
        "partition 1: requests from 2026-11-23 12:00:00+00:00, the time of the backup's batch, until now are lost",
        "the journal goes back beyond the backup: checkpoint rebuild with --backup restores these changes",
        "requests has 10 requests after the backup, which the job reads after its start",
    ]


@pytest.mark.parametrize(
    ("journal", "line"),
    [
        (PartitionReach(5, 9, NOON + MINUTE_MS), "it begins at 2026-11-23 12:01:00+00:00"),
        (PartitionReach(9, 9, None), "it is empty"),
    ],
)
def test_a_journal_that_is_too_short_is_named(journal: PartitionReach, line: str) -> None:
    found = losses({0: 1}, {0: PartitionReach(2, 3, NOON)}, {0: WHOLE[0], 1: journal})
    assert f"the journal is too short for these changes, too: {line}" in found.lines


def test_a_topic_that_was_created_again_or_cut_is_named() -> None:
    assert "deleted and created again" in losses({0: 1}, WHOLE, is_another_topic=True).lines[0]
    cut = losses({0: 1_000}, WHOLE)
    assert not cut.is_lossless
    assert "no longer holds the last 100 requests" in cut.lines[0]


@pytest.mark.parametrize(
    ("read", "newest", "position"),
    [
        # Without a backup: a batch before the last request of the journal, or all of the log.
        ({}, {0: 700}, 601),
        ({}, {0: 50}, 10),
        ({}, {}, 10),
        # With one, never before its end.
        ({0: 650}, {0: 700}, 650),
        ({0: 300}, {0: 700}, 601),
        ({0: 300}, {}, 300),
        ({0: 5}, {}, 10),
        ({0: 1_000}, {}, 900),
    ],
)
def test_a_rebuilt_checkpoint_reads_from_before_the_last_batch(
    read: dict[int, int], newest: dict[int, int], position: int
) -> None:
    requests = {0: PartitionReach(10, 900, NOON)}
    assert start_positions(requests, read, newest, batch_size=100) == {0: position}


def test_a_partition_that_ends_before_a_journalled_request_is_cut() -> None:
    assert cut_partitions(WHOLE, {0: 900, 3: 1}) == {0: 900}
    assert cut_partitions(WHOLE, {0: 899}) == {}


def test_all_partitions_of_a_topic_that_was_created_again_are_cut_however_long_they_are() -> None:
    assert cut_partitions(WHOLE, {0: 899, 3: 1}, is_another_topic=True) == {0: 899}


def entry(group_id: str, offsets: int = 1) -> GroupDirectoryEntry:
    return GroupDirectoryEntry(group_id, "Stable", "classic", "consumer", generation=3, members=2, offsets=offsets)


def rebuilt(group_id: str, known: Known = Known.ALL, *, is_readable: bool = True) -> RebuiltGroup:
    return RebuiltGroup(StoredGroup(group_id, b"", 0), known, entry(group_id) if is_readable else None)


def test_the_report_names_each_group_that_is_not_as_it_was() -> None:
    report = RebuildReport(entries=9)
    groups = [rebuilt("a"), rebuilt("b", Known.OFFSETS), rebuilt("c"), rebuilt("d", is_readable=False)]
    report.compare(groups, {"a": entry("a"), "b": entry("b", 7), "c": entry("c", 2), "e": entry("e")})
    assert not report.is_lossless
    assert list(report.lines()) == [
        "4 groups from 9 entries of the journal",
        "1 group cannot be rebuilt: the journal no longer has entries",
        "  e: Stable, generation 3, 2 members, 1 offset",
        "1 group can be rebuilt in part: the journal no longer has the oldest entries",
        "  b: Stable, generation 3, 2 members, 1 offset: offsets since the journal's beginning, but no members; the "
        "directory says Stable, generation 3, 2 members, 7 offsets",
        "1 group would differ from the directory: entries of the journal are missing",
        "  c: Stable, generation 3, 2 members, 1 offset; the directory says Stable, generation 3, 2 members, 2 offsets",
        "1 group cannot be read in the backup: still in quarantine",
        "  d",
    ]


def test_a_long_list_is_cut_and_a_complete_rebuild_says_so() -> None:
    report = RebuildReport()
    report.compare([], {str(number): entry(str(number)) for number in range(SHOWN + 5)})
    assert list(report.lines())[-1] == "  and 5 more: --json lists all"
    report = RebuildReport()
    report.compare([rebuilt("a")], {"a": entry("a")})
    assert list(report.lines())[-1] == "every group can be rebuilt completely"
