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


def test_files_that_share_something_run_in_one_worker(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PROGRAM)
    command = [sys.executable, "-m", "pytest", *WITHOUT_THE_PROJECTS_SETTINGS, f"--rootdir={tmp_path}", "-rP"]
    command += ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--import-mode=importlib", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if " has " in line]
    workers = {str(Path(file).relative_to(tmp_path)): worker for worker, _, file in lines}
    assert set(workers) == set(FILES)
    assert workers["tests/clients/test_a.py"] == workers["tests/clients/test_c.py"]
    assert len(set(workers.values())) == 3


def test_what_is_shared_has_files() -> None:
    for files in SHARED.values():
        assert all((ROOT / file).exists() for file in files)
