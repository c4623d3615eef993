"""The demo runs with real processes, passes its own checks, and leaves neither files nor processes behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.coordinator_process import SHORT_LIVED_JVMS

LIMIT_SECONDS = 600


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_the_demo_passes_its_own_checks_and_leaves_nothing_behind(tmp_path: Path) -> None:
    page = tmp_path / "pages" / "demo.html"
    demo = subprocess.run(
        [sys.executable, "-m", "streaming.cli", "demo", "--json", "--html", str(page)],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=in_folder(tmp_path),
    )
    assert demo.returncode == 0, demo.stderr
    result = json.loads(demo.stdout)
    assert result["passed"]
    assert len(result["checks"]) == 10
    (take_over,) = (check for check in result["checks"] if check["name"] == "the take-over caused no rebalance")
    assert take_over["detail"].startswith("first answer after ")
    assert page.as_uri() in demo.stderr
    assert "session expired" in page.read_text()
    assert list(tmp_path.glob("group-coordinator-*")) == []
    assert commands_with(str(tmp_path)) == []


def in_folder(folder: Path) -> dict[str, str]:
    """The environment of a demo whose temporary files are in this folder."""
    return {**os.environ, **SHORT_LIVED_JVMS, "TMPDIR": str(folder)}


def commands_with(text: str) -> list[str]:
    """The command lines of running processes that contain a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # the process has ended in the meantime
        if text in command:
            found.append(command)
    return found
