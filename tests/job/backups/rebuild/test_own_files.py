"""The starts of a rebuilt checkpoint: no epoch of a job that has written the journal is given again."""

from pathlib import Path

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from streaming.job.backups.rebuild.rebuilding import write_own_files
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroups
from streaming.job.group_batch.starts import Start
from tests.logic.driver import Driven


def start(started_at: int, epoch: int) -> Start:
    return Start(started_at=started_at, config=CoordinatorConfig(job_epoch=epoch))


def epochs_in(checkpoint: Path) -> dict[str, int]:
    files = sorted((checkpoint / "starts").iterdir())
    return {path.name: msgspec.json.decode(path.read_bytes() or b'{"startedAt":0}', type=Start).epoch for path in files}


@pytest.mark.parametrize(
    ("announced", "last_epoch", "expected"),
    [
        ([], 7, {"900": 7}),
        ([start(100, 3)], 7, {"100": 3, "900": 7}),
        ([start(100, 6), start(200, 7)], 7, {"100": 6, "200": 7}),
        ([start(100, 8)], 7, {"100": 8}),
        # A journal of an earlier release, which has no epochs.
        ([], 0, {"900": 0}),
    ],
)
def test_the_newest_epoch_of_the_journal_or_of_the_announcements_is_kept(
    tmp_path: Path, announced: list[Start], last_epoch: int, expected: dict[str, int]
) -> None:
    write_own_files(tmp_path, "the-id", announced, start(900, last_epoch))
    assert epochs_in(tmp_path) == expected
    assert [path.name for path in (tmp_path / "requests-topic").iterdir()] == ["the-id"]


def test_the_starts_of_the_backup_count_too(tmp_path: Path) -> None:
    (tmp_path / "starts").mkdir()
    (tmp_path / "starts" / "50").touch()
    write_own_files(tmp_path, None, [], start(900, 7))
    assert epochs_in(tmp_path) == {"50": 0, "900": 7}


def test_the_highest_epoch_of_the_journal_is_known() -> None:
    driven = Driven()
    driven.stable_group(1)
    groups = RebuiltGroups({}, {})
    for entry in driven.journal:
        groups.add(msgspec.structs.replace(entry, job_epoch=7 if entry.sequence == 2 else 5))
    assert groups.newest_epoch == 7
