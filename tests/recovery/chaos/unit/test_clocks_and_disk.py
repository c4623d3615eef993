"""The library that steps a process's clock, and the small disk, without a JVM."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from streaming.embedded.environment import in_environment
from tests.recovery.chaos.clocks import NoCompiler, SteppedClock, build_library
from tests.recovery.chaos.disk import NoMount, full, small_disk

WATCH = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""

COMMAND = [sys.executable, "-c", WATCH]


def test_the_clock_of_a_process_is_stepped_while_it_runs(tmp_path: Path) -> None:
    try:
        library = build_library(tmp_path)
    except NoCompiler as reason:
        pytest.skip(str(reason))
    clock = SteppedClock(library, tmp_path / "clock")
    with (
        in_environment(clock.environment),
        subprocess.Popen(
            [sys.executable, "-c", WATCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as seen,
    ):
        assert seen.stdin is not None
        assert seen.stdout is not None
        try:
            for ahead_ms in (0, 3_600_000, -60_000, 0):
                clock.set_ahead(ahead_ms)
                print(file=seen.stdin, flush=True)
                now, monotonic = map(float, seen.stdout.readline().split())
                assert now - time.time() == pytest.approx(ahead_ms / 1000, abs=30)
                assert monotonic == pytest.approx(time.monotonic(), abs=30)
        finally:
            seen.kill()


def test_a_small_disk_is_full_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    try:
        with small_disk(folder):
            with full(folder), pytest.raises(OSError, match="No space left"):
                (folder / "file").write_bytes(bytes(100_000))
            (folder / "file").write_bytes(bytes(100_000))
            assert [path.name for path in folder.iterdir()] == ["file"]
    except NoMount as reason:
        pytest.skip(str(reason))
    assert list(folder.iterdir()) == []


def test_only_a_small_disk_is_filled(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), full(tmp_path):
        pass
