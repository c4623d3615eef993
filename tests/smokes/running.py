"""A command of the tests as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.bench.environment import ROOT
from tests.support.coordinator_process import SHORT_LIVED_JVMS

LIMIT_SECONDS = 900.0


def run(module: str, *arguments: str, results: Path) -> str:
    """Run ``python -m module`` with results in this folder; returns what it printed. Raises AssertionError."""
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, **SHORT_LIVED_JVMS, "BENCH_RESULTS": str(results)}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout + ended.stderr
