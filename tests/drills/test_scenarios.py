"""The parts of the scenarios that need no coordinator."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from streaming.cli.commands.drill import DRILLS
from streaming.contract.errors import CannotRun
from streaming.drills.run import ALL
from streaming.drills.scenarios import SCENARIOS
from streaming.drills.scenarios.checkpoints import files_to_remove, newest_backup, tear
from streaming.drills.scenarios.clock import STEP_SECONDS, library, variables
from streaming.drills.waiting import DrillFailed
from streaming.job.checkpoints.damage import REPLACE, check_damage
from streaming.job.checkpoints.local_folder import LocalFolder
from tests.support.waiting import wait_until

DAMAGED = "error: checkpoint /c is damaged: commits/71 is not a batch that Spark has completed: truncated: "


def test_the_command_knows_every_drill_in_their_order() -> None:
    assert list(DRILLS) == [ALL, *dict.fromkeys(each.drill for each in SCENARIOS)]


@pytest.mark.parametrize(
    ("advice", "files"),
    [
        ("remove commits/71, and the job reads the requests of that time again", ["commits/71"]),
        ("remove offsets/7, commits/7, and the job reads the requests of that time again", ["offsets/7", "commits/7"]),
        ("remove state/0/0/9.snapshot", ["state/0/0/9.snapshot"]),
    ],
)
def test_the_files_to_remove_are_those_of_the_line(advice: str, files: list[str]) -> None:
    assert files_to_remove(DAMAGED + advice) == files


def test_a_line_that_names_no_file_fails_the_drill() -> None:
    with pytest.raises(DrillFailed, match="does not say which file to remove"):
        files_to_remove(DAMAGED + REPLACE)


def test_a_checkpoint_without_a_remedy_is_restored_or_rebuilt_and_a_new_one_needs_its_option(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "7").write_text("v1\n{}")
    with pytest.raises(CannotRun, match=r"restore a copy.*rebuild it from the journal.*--new-checkpoint loses"):
        check_damage(LocalFolder(tmp_path), str(tmp_path))


def test_a_torn_file_has_half_of_its_bytes_and_no_checksum(tmp_path: Path) -> None:
    torn, checksum = tmp_path / "71", tmp_path / ".71.crc"
    torn.write_bytes(b"12345678")
    checksum.write_bytes(b"crc")
    tear(torn)
    assert torn.read_bytes() == b"1234"
    assert not checksum.exists()


def test_the_newest_backup_is_the_finished_one_with_the_latest_time(tmp_path: Path) -> None:
    for name in ("2026-11-23T12-00-00.000000Z-batch-9", "2026-11-23T12-00-01.000000Z-batch-10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
    (tmp_path / "2026-11-23T12-00-02.000000Z-batch-11").mkdir()
    assert newest_backup(tmp_path).name.endswith("batch-10")


@pytest.mark.skipif(find_spec("libfaketime") is None or sys.platform != "linux", reason="libfaketime is not installed")
def test_the_clock_of_a_process_moves_while_it_runs_and_durations_stay_right(tmp_path: Path) -> None:
    clock, clocks = tmp_path / "clock", tmp_path / "clocks"
    clock.write_text("+0\n")
    program = (
        "import sys, time\n"
        f"with open({str(clocks)!r}, 'w') as file:\n"
        "    while True:\n"
        "        file.write(f'{time.time()} {time.monotonic()}\\n'); file.flush(); time.sleep(0.05)\n"
    )

    def last() -> tuple[float, float]:
        lines = clocks.read_text().splitlines() if clocks.exists() else []
        complete = [line.split() for line in lines if len(line.split()) == 2]
        return (float(complete[-1][0]), float(complete[-1][1])) if complete else (0.0, 0.0)

    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, **variables(library(), clock)})
    try:
        wait_until(lambda: abs(last()[0] - time.time()) < 5, "the right time")
        clock.write_text(f"+{STEP_SECONDS}\n")
        wait_until(lambda: abs(last()[0] - time.time() - STEP_SECONDS) < 5, "the wrong time")
        assert abs(last()[1] - time.monotonic()) < 5
        clock.write_text("+0\n")
        wait_until(lambda: abs(last()[0] - time.time()) < 5, "the right time again")
    finally:
        process.kill()
        process.wait()
