"""The defects are planted in a process that starts with their variables; no JVM is needed to see that."""

import os
import subprocess
import sys

import pytest

from tests.recovery.chaos.broken.defects import DEFECTS, environment_of

LIMIT_SECONDS = 60.0

PRINT = """
from coordinator_logic.handlers import checks, join_group
from streaming.job.election.candidate import Candidate
from streaming.job.group_batch import processing
from streaming.job.group_batch.settings import Settings
places = (join_group._generate_member_id, processing.store, checks.check_generation, Settings.started_at)
print([place.__module__ for place in (*places, Candidate.failure.fget, Candidate.is_free)].count(
    "tests.recovery.chaos.broken.defects"
))
"""


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_planted_at_the_start_of_a_process(name: str) -> None:
    environment = {**os.environ, **environment_of(name)}
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    assert done.stdout == "1\n"
