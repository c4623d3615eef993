"""The job's stand-ins replace names of the job's modules; a name that has moved must not wait for the next bench."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["default_settings", "watched"])
def test_a_stand_in_replaces_names_that_the_job_has(module: str) -> None:
    command = [sys.executable, "-m", f"tests.bench.systems.{module}", "run", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "--checkpoint" in shown.stdout
