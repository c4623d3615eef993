"""The demo is the whole story with real processes; here it is told once, and nothing of it may remain."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_SECONDS = 240


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_the_demo_passes_its_own_checks_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.run(
        [sys.executable, "-m", "streaming.cli", "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=environment,
    )
    assert demo.returncode == 0, demo.stderr
    result = json.loads(demo.stdout)
    assert result["passed"]
    assert len(result["checks"]) == 10
    assert list(tmp_path.glob("group-coordinator-*")) == []
    assert processes_that_mention(str(tmp_path)) == []


def processes_that_mention(text: str) -> list[str]:
    """The command lines of running processes that have the text in them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # the process has ended meanwhile
        if text in command:
            found.append(command)
    return found
