import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.plugins.file_times import OPTION, SLOWEST

ROOT = Path(__file__).resolve().parents[3]

SLOW = """
import time

import pytest


@pytest.fixture(scope="session")
def prepared():
    time.sleep(0.4)


def test_first(prepared):
    pass


def test_second():
    time.sleep(0.4)
"""
QUICK = "def test_quick():\n    pass\n"
WITHOUT_THE_PROJECTS_SETTINGS = ("-c", "/dev/null", "-p", "no:cacheprovider", "-p", "tests.support.plugins.file_times")


def run(folder: Path, *arguments: str) -> list[tuple[float, str]]:
    """Run the tests of a folder with the plugin; returns the files of the summary with their seconds."""
    command = [sys.executable, "-m", "pytest", *WITHOUT_THE_PROJECTS_SETTINGS, f"--rootdir={folder}", *arguments]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    _, _, summary = done.stdout.partition(f" slowest {SLOWEST} files ")
    return [(float(seconds), file) for seconds, file in re.findall(r"^ +([\d.]+)s  (\S+)$", summary, re.MULTILINE)]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_slowest_files_are_printed_with_the_time_of_tests_and_fixtures(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_slow.py").write_text(SLOW)
    for number in range(SLOWEST):
        (tmp_path / f"test_quick_{number}.py").write_text(QUICK)
    printed = run(tmp_path, "-n", workers)
    assert len(printed) == SLOWEST
    seconds, file = printed[0]
    assert file == "test_slow.py"
    assert 0.8 <= seconds < 30
    assert all(file.startswith("test_quick_") for _, file in printed[1:])


def test_what_an_earlier_run_has_kept_counts_too(tmp_path: Path) -> None:
    tests, kept = tmp_path / "tests", tmp_path / "times"
    tests.mkdir()
    (tests / "test_quick.py").write_text(QUICK)
    kept.write_text("2.500 test_of_another_part.py\n7.000 test_quick.py\n")
    (first, first_file), second = run(tests, OPTION, str(kept))
    assert first_file == "test_quick.py"
    assert 7 <= first < 8
    assert second == (2.5, "test_of_another_part.py")
    assert [line.split()[1] for line in kept.read_text().splitlines()] == ["test_quick.py", "test_of_another_part.py"]
