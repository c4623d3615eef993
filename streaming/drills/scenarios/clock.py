"""A clock is wrong for some seconds: that of the job, then that of the broker.

libfaketime, preloaded into these processes alone, moves their clocks while they run. This machine's clock stays right.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import DrillSkipped

STEP_SECONDS = 600
WRONG_SECONDS = 12.0
"""Longer than the members' sessions."""

RIGHT = "+0"
BROKER, JOB = "broker", "job"
SIDES = {BROKER: "s ahead of the driver's", JOB: "s behind the driver's"}
"""What the job's warning says about the brokers' clocks, by the clock that is ahead."""

TRY_SECONDS = 10.0

LONGEST_GAP_SECONDS = {JOB: 60.0, BROKER: 20.0}
AND_THEN = {JOB: " after a new start of the job, which ends when its clock goes back", BROKER: " all the time"}

BACK = "clock has gone back"
"""In the job's line, which then ends."""


def library() -> Path:
    """The library that the package libfaketime brings. Raises DrillSkipped if there is none for this machine."""
    package = find_spec("libfaketime")
    folders = (package.submodule_search_locations if package else None) or []
    for folder in folders:
        found = Path(folder, "vendor", "libfaketime", "src", "libfaketime.so.1")
        if found.exists() and sys.platform == "linux" and _moves_clocks(found):
            return found
    raise DrillSkipped("clocks are moved with libfaketime, on Linux: pip install 'spark-group-coordinator[drill]'")


def variables(preloaded: Path, clock: Path) -> dict[str, str]:
    """The environment of a process whose clock is off by what the file ``clock`` says, also while it runs."""
    others = os.environ.get("LD_PRELOAD")
    return {
        "LD_PRELOAD": f"{preloaded}:{others}" if others else str(preloaded),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        # The file is read again every second.
        "FAKETIME_CACHE_DURATION": "1",
        # Java measures durations with this clock; wrong time of day does not change it.
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def preload(stage: Stage) -> None:
    """Start broker and job again with clocks that can be moved, unless they are."""
    coordinator, preloaded = stage.coordinator, library()
    if coordinator.environment:
        return
    for name in (BROKER, JOB):
        _clock(stage, name).write_text(f"{RIGHT}\n")
    stage.step("broker and job are started again with clocks that can be moved")
    coordinator.job.terminate()
    coordinator.broker.stop()
    coordinator.broker.environment = variables(preloaded, _clock(stage, BROKER))
    coordinator.environment = variables(preloaded, _clock(stage, JOB))
    coordinator.broker.start()
    coordinator.start_job().await_ready()


def step_clock(name: str) -> Callable[[Stage], None]:
    """The scenario's play for the clock of ``name``."""

    def play(stage: Stage) -> None:
        stage.fault(f"the clock of the {name} is put {STEP_SECONDS // 60} minutes ahead")
        _clock(stage, name).write_text(f"+{STEP_SECONDS}\n")
        line = stage.coordinator.job.await_line("that the clocks differ", lambda line: SIDES[name] in line)
        stage.step(f"the job says: {line}")
        stage.watch_for(WRONG_SECONDS, f"the clock of the {name} is wrong")
        stage.step(f"the clock of the {name} is put right: it goes back by {STEP_SECONDS // 60} minutes")
        _clock(stage, name).write_text(f"{RIGHT}\n")
        if name == JOB:
            line = stage.coordinator.job.await_line("that the job ends", lambda line: BACK in line)
            stage.step(f"the job says: {line}; it is started again, as a supervisor would do")
            stage.coordinator.await_end_of_jvm()
            stage.coordinator.start_job()
        stage.watch_for(WRONG_SECONDS, "the clock has gone back")

    return play


def _moves_clocks(preloaded: Path) -> bool:
    """Whether the library works here: it is made for one processor and one C library."""
    with tempfile.NamedTemporaryFile("w") as clock:
        clock.write(f"+{STEP_SECONDS}\n")
        clock.flush()
        tried = subprocess.run(
            [sys.executable, "-c", "import time; print(time.time())"],
            env={**os.environ, **variables(preloaded, Path(clock.name))},
            capture_output=True,
            text=True,
            timeout=TRY_SECONDS,
            check=False,
        )
    return tried.returncode == 0 and abs(float(tried.stdout) - time.time() - STEP_SECONDS) < TRY_SECONDS


def _clock(stage: Stage, name: str) -> Path:
    return stage.coordinator.folder / f"clock-of-{name}"


SCENARIOS = tuple(
    Scenario(
        drill="clock",
        title=f"The clock of the {name} is wrong",
        what=f"The clock of the {name} is put {STEP_SECONDS // 60} minutes ahead, and {WRONG_SECONDS:g} s later right "
        "again. Members that keep sending heartbeats must not be expelled, and requests must be answered"
        f"{AND_THEN[name]}.",
        objectives=RecoveryObjectives(first_answer_seconds=20, longest_gap_seconds=LONGEST_GAP_SECONDS[name]),
        play=step_clock(name),
        prepare=preload,
    )
    for name in (JOB, BROKER)
)
