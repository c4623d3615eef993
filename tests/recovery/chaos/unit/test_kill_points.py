"""The moments of a batch, on the files that Spark writes in it, one after the other."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recovery.chaos.kill_points import Point, caught_at, see
from tests.support.waiting import wait_until

UNFINISHED = ".8.delta.6b1e66b5-3c2f-4a3e-8b41-7e3e3e9e1c3f.TID97.tmp"
LIMIT_SECONDS = 30.0


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two partitions after batch 6."""
    for name in ("offsets/5", "offsets/6", "commits/5", "commits/6", "offsets/.6.crc"):
        write(tmp_path / name)
    for partition in (0, 1):
        for name in ("_metadata/schema", "6.delta", "7.delta", "5.snapshot"):
            write(tmp_path / f"state/0/{partition}" / name)
    return tmp_path


def write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def batch_7(checkpoint: Path) -> Iterator[Point | None]:
    """Write the files of a batch; yields the moment that each leads to, if it is one."""
    write(checkpoint / "offsets/7")
    yield Point.PLANNED
    write(checkpoint / "state/0/0" / UNFINISHED)
    yield Point.STATE_COMMIT
    (checkpoint / "state/0/0" / UNFINISHED).rename(checkpoint / "state/0/0/8.delta")
    yield None
    write(checkpoint / "state/0/1" / UNFINISHED)
    yield Point.STATE_COMMIT
    (checkpoint / "state/0/1" / UNFINISHED).rename(checkpoint / "state/0/1/8.delta")
    yield Point.WRITTEN
    write(checkpoint / "commits/7")
    yield None


def test_each_moment_is_told_by_the_files(checkpoint: Path) -> None:
    points = [point for point in Point if point is not Point.SNAPSHOT]
    assert not any(see(checkpoint).is_at(point) for point in points)
    for moment in batch_7(checkpoint):
        assert [point for point in points if see(checkpoint).is_at(point)] == ([] if moment is None else [moment])


@pytest.mark.parametrize(
    "name", [".8.snapshot.6b1e66b5.tmp", ".8_0b7c.zip.6b1e66b5.TID3.tmp", ".8.snapshot.6b1e66b5.TID3.tmp"]
)
def test_a_snapshot_is_told_by_its_temporary_file(checkpoint: Path, name: str) -> None:
    assert not see(checkpoint).is_at(Point.SNAPSHOT)
    write(checkpoint / "state/0/1" / name)
    assert see(checkpoint).is_at(Point.SNAPSHOT)
    (checkpoint / "state/0/1" / name).unlink()
    assert not see(checkpoint).is_at(Point.SNAPSHOT)


def test_rocksdb_writes_a_changelog(checkpoint: Path) -> None:
    for partition in (0, 1):
        write(checkpoint / f"state/0/{partition}/7_0b7c-11.changelog")
    write(checkpoint / "offsets/7")
    write(checkpoint / "state/0/0/.8_0b7c-12.changelog.6b1e66b5.TID3.tmp")
    assert see(checkpoint).is_at(Point.STATE_COMMIT)


@pytest.mark.parametrize("point", [Point.PLANNED, Point.STATE_COMMIT, Point.WRITTEN])
def test_a_writer_is_stopped_at_the_moment(checkpoint: Path, point: Point) -> None:
    go_on, is_stopped, has_ended = threading.Event(), threading.Event(), threading.Event()
    reached: list[Point | None] = []

    def write_batch() -> None:
        for moment in batch_7(checkpoint):
            reached.append(moment)
            is_stopped.wait(LIMIT_SECONDS if moment is point else 0)
            if is_stopped.is_set():
                go_on.wait(LIMIT_SECONDS)
        has_ended.set()

    writer = threading.Thread(target=write_batch)
    writer.start()
    try:
        assert caught_at(point, checkpoint, is_stopped.set, go_on.set, LIMIT_SECONDS)
        # The files are there a little before the writer says so.
        wait_until(lambda: reached[-1] is point, "the writer's word")
        assert not has_ended.is_set()
    finally:
        go_on.set()
        writer.join()


def test_a_moment_that_has_passed_when_the_writer_is_stopped_does_not_count(checkpoint: Path) -> None:
    write(checkpoint / "offsets/7")
    gone_on: list[str] = []

    def stop() -> None:
        write(checkpoint / "commits/7")

    assert not caught_at(Point.PLANNED, checkpoint, stop, lambda: gone_on.append("on"), 0.1)
    assert gone_on == ["on"]
