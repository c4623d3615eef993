"""``group-coordinator drill``: a real kill, and a real hand-over of a coordinator that runs already."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.drills.reports.report import Report
from tests.recovery.test_demo import commands_with
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess

LIMIT_SECONDS = 540.0
QUICK = {"master": "local[2]", "driver-memory": "512m", "trigger-interval-ms": 200, "cpu-budget": 0, **SHORT_LIVED_JVM}

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(LIMIT_SECONDS + 60)]


def run_drill(temporary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streaming.cli", "drill", "--json", *arguments]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)


def test_a_kill_is_measured_and_reported_and_nothing_is_left_behind(tmp_path: Path) -> None:
    temporary, reports = tmp_path / "temporary", tmp_path / "reports"
    temporary.mkdir()
    settings = [f"--set={key}={value}" for key, value in QUICK.items()]
    done = run_drill(temporary, "kill", "-o", str(reports), *settings)
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    (drill,) = report.drills
    assert report.passed
    assert drill.figures is not None
    assert drill.figures.first_answer_seconds is not None
    assert 1 < drill.figures.first_answer_seconds < 60
    assert drill.noticed is not None
    assert (drill.noticed.lost, drill.noticed.rejoins, drill.noticed.expelled) == (0, 0, 0)
    assert drill.acknowledged > 100
    assert len(drill.generations) == 2
    assert all(before == after > 0 for before, after in drill.generations.values())
    assert sorted(path.suffix for path in reports.iterdir()) == [".html", ".json"]
    assert list(temporary.iterdir()) == []
    assert commands_with(str(temporary)) == []


@pytest.mark.long
def test_a_running_coordinator_hands_over_when_its_process_is_named(
    new_coordinator: Callable[..., CoordinatorProcess], tmp_path: Path
) -> None:
    active = new_coordinator()
    standby = new_coordinator(
        {"checkpoint": str(active.checkpoint), "topic-prefix": active.topics.prefix, "standby": True}
    )
    active.start()
    standby.launch()
    standby.await_line("that it stands by", lambda line: "standby: the job on" in line)
    arguments = ["standby", "-b", active.bootstrap_servers, "--topic-prefix", active.topics.prefix]
    arguments += ["-o", str(tmp_path / "reports")]
    asked = run_drill(tmp_path, *arguments)
    assert asked.returncode == 2
    assert f"add --pid {active.pid}" in asked.stderr
    assert active.is_running
    done = run_drill(tmp_path, *arguments, "--pid", str(active.pid))
    assert done.returncode == 0, done.stderr
    assert active.wait() == 0
    report = msgspec.json.decode(done.stdout, type=Report)
    (drill,) = report.drills
    assert drill.episode is not None
    assert any(
        "active now: the job on" in step.text and f"process id {standby.pid}," in step.text
        for step in drill.episode.steps
    )
