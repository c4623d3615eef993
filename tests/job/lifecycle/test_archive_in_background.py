"""The class archive is made in the background, by a process that ends with the job."""

import re
import sys
from pathlib import Path

import pytest

from streaming.job.lifecycle.archive_in_background import making_class_archive
from tests.support.waiting import wait_until


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("", "made an archive"),
        ("import sys; sys.exit('the disk is full')", "warning: no archive .* was made: the disk is full"),
    ],
)
def test_the_result_is_reported(code: str, line: str) -> None:
    lines: list[str] = []
    with making_class_archive(lines.append, python(code), delay_seconds=0.0):
        wait_until(lambda: lines, "the result")
    (reported,) = lines
    assert re.search(line, reported)


def test_a_job_that_ends_soon_starts_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    started = tmp_path / "started"
    with making_class_archive(lines.append, python(f"open({str(started)!r}, 'w')"), delay_seconds=60.0):
        pass
    assert not started.exists()
    assert not lines


def test_the_process_ends_with_the_job(tmp_path: Path) -> None:
    lines: list[str] = []
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with making_class_archive(lines.append, python(code), delay_seconds=0.0):
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), "the process")
    wait_until(lambda: not Path("/proc", pid_file.read_text()).exists(), "the end of the process")
    assert not lines
