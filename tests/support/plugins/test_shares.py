import subprocess
import sys
from pathlib import Path

from tests.support.plugins.shares import SHARED

ROOT = Path(__file__).resolve().parents[3]
WITHOUT_THE_PROJECTS_SETTINGS = ("-c", "/dev/null", "-p", "no:cacheprovider", "-p", "tests.support.plugins.shares")
FILES = ("tests/clients/test_a.py", "tests/other/test_b.py", "tests/clients/test_c.py", "tests/other/test_d.py")
PROGRAM = (
    "import os, time\ndef test_it(worker_id):\n    time.sleep(0.2)\n    print('\\n', worker_id, 'has', __file__)\n"
)
COORDINATOR = """
import pytest

@pytest.fixture(scope="session")
def coordinator():
    print("started", file=open("events", "a"))
    yield
    print("ended", file=open("events", "a"))
"""
WITH_THE_COORDINATOR = "def test_it(coordinator):\n    print('used', file=open('events', 'a'))\n"
WITHOUT = "def test_it():\n    print('not used', file=open('events', 'a'))\n"


def run(folder: Path, programs: dict[str, str], *options: str) -> str:
    """The output of pytest with some files in a folder."""
    for name, program in programs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(program)
    command = [sys.executable, "-m", "pytest", *WITHOUT_THE_PROJECTS_SETTINGS, f"--rootdir={folder}", "-rP"]
    command += ["--import-mode=importlib", *options, str(folder)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_files_that_share_something_run_in_one_worker(tmp_path: Path) -> None:
    output = run(tmp_path, dict.fromkeys(FILES, PROGRAM), "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
    lines = [line.split() for line in output.splitlines() if " has " in line]
    workers = {str(Path(file).relative_to(tmp_path)): worker for worker, _, file in lines}
    assert set(workers) == set(FILES)
    assert workers["tests/clients/test_a.py"] == workers["tests/clients/test_c.py"]
    assert len(set(workers.values())) == 3


def test_the_coordinator_ends_after_the_files_that_share_it_and_starts_again_for_a_later_one(tmp_path: Path) -> None:
    programs = {
        "conftest.py": COORDINATOR,
        "tests/cli/test_commands.py": WITHOUT + WITH_THE_COORDINATOR.replace("test_it", "test_other"),
        "tests/cli/test_explain.py": WITHOUT + WITH_THE_COORDINATOR.replace("test_it", "test_other"),
        "tests/client/test_a.py": WITHOUT,
        "tests/docs/test_a.py": WITH_THE_COORDINATOR,
    }
    run(tmp_path, programs, "-p", "no:xdist")
    events = (tmp_path / "events").read_text().splitlines()
    first = ["not used", "started", "used", "not used", "used", "ended"]
    assert events == [*first, "not used", "started", "used", "ended"]


def test_what_is_shared_has_files() -> None:
    for files in SHARED.values():
        assert all((ROOT / file).exists() for file in files)
