"""`make cluster-demo` passes its own checks, and leaves neither files nor processes behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.recovery.test_demo import commands_with, in_folder

LIMIT_SECONDS = 900


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_the_demo_passes_its_own_checks_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "tests.cluster.demo"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=in_folder(tmp_path),
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "the end of an executor caused no rebalance: first answers after " in demo.stdout
    assert list(tmp_path.glob("group-coordinator-*")) == []
    assert commands_with(str(tmp_path)) == []
