"""The epoch of the job after a restore: without the announcements, it is higher than that of all entries."""

from pathlib import Path

import msgspec
import pytest

from streaming.job.backups.epochs import (
    AnnouncedEpochs,
    keep_epoch,
    newest_epoch_in,
    newest_epoch_of,
    start_with_epoch,
    write_start,
)
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroups, Resumption
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.state_row import load_whole
from streaming.job.options import load_options
from tests.logic.driver import Driven


def start_of(epoch: int) -> Start:
    options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": "-"}, {})
    return start_with_epoch(options, "group-requests", {0: 10, 1: 12}, 1_000, epoch)


def test_the_newest_epoch_is_that_of_any_entry_and_not_of_what_is_no_entry() -> None:
    driven = Driven()
    driven.stable_group(1)
    entries = [msgspec.structs.replace(entry, job_epoch=7 if entry.sequence == 2 else 5) for entry in driven.journal]
    assert newest_epoch_of([None, *entries]) == 7
    assert newest_epoch_of([None]) == 0


def test_entries_of_epochs_that_no_job_has_announced_are_left_out_of_a_rebuild() -> None:
    driven = Driven()
    driven.stable_group(1)
    honest = [msgspec.structs.replace(entry, job_epoch=5) for entry in driven.journal]
    other = Driven()
    other.stable_group(2)
    forged = [msgspec.structs.replace(entry, job_epoch=2**40) for entry in other.journal]
    announced = AnnouncedEpochs(5)
    groups = RebuiltGroups({}, {})
    for entry in announced.of([*honest, None, *forged]):
        groups.add(entry)
    assert (announced.left_out, groups.newest_epoch, groups.journal.forked) == (len(forged), 5, set())
    (found,) = groups.finished(Resumption({0: 100}, {0: driven.now}, driven.now), driven.config, {})
    assert list(load_whole(found.stored.stored).part.member_ids) == list(driven.group.part.member_ids)


def test_without_announcements_the_journal_tells_the_epochs() -> None:
    driven = Driven()
    driven.stable_group(1)
    announced = AnnouncedEpochs(0)
    entries = [msgspec.structs.replace(entry, job_epoch=5) for entry in driven.journal]
    assert list(announced.of(entries)) == entries


def test_a_start_in_place_of_a_lost_one_goes_on_where_the_backup_ends() -> None:
    start = start_of(7)
    assert start.config is not None
    assert (start.epoch, start.config.requests_partitions) == (7, 2)
    assert (start.read_until, start.last_batch_time, start.replays) == ({0: 10, 1: 12}, 1_000, False)


@pytest.mark.parametrize(("in_backup", "in_journal", "kept"), [(3, 7, 7), (7, 7, 7), (8, 7, 8), (None, 7, 7)])
def test_the_epoch_of_a_restored_checkpoint_is_the_highest_that_is_known(
    tmp_path: Path, in_backup: int | None, in_journal: int, kept: int
) -> None:
    if in_backup is not None:
        write_start(tmp_path, msgspec.structs.replace(start_of(in_backup), started_at=1))
    before = set(tmp_path.rglob("*"))
    keep_epoch(tmp_path, start_of(in_journal))
    assert newest_epoch_in(tmp_path) == kept
    if kept == in_backup:
        assert set(tmp_path.rglob("*")) == before
