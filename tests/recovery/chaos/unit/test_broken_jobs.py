"""The defects are planted in a process that starts with their variables; no JVM is needed to see that."""

import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from coordinator_logic.group import Group
from streaming.job.rows.records import SizeLimits
from tests.recovery.chaos.broken import defects
from tests.recovery.chaos.broken.defects import DEFECTS, SHOWN_BY, environment_of, is_epoch_checked
from tests.recovery.chaos.faults.catalogue import FAULTS

processing: Any = import_module("streaming.job.group_batch.processing")

LIMIT_SECONDS = 60.0

PRINT = """
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.requests import join_group
from streaming.job.election.candidate import Candidate
from streaming.job.group_batch import processing
from streaming.job.group_batch.settings import Settings
places = (join_group.generated_member_id, processing.store, ClassicGroup.check_generation, Settings.started_at)
print([place.__module__ for place in (*places, Candidate.failure.fget, Candidate.is_free)].count(
    "tests.recovery.chaos.broken.defects"
))
"""


def test_each_defect_has_a_fault_that_shows_it() -> None:
    assert SHOWN_BY.keys() == DEFECTS.keys()
    assert set(SHOWN_BY.values()) <= FAULTS.keys()


def test_clients_check_the_epoch_unless_that_is_the_defect() -> None:
    assert is_epoch_checked({})
    assert [name for name in DEFECTS if not is_epoch_checked(environment_of(name))] == ["no-epoch-check"]


def test_a_state_that_is_not_stored_is_the_one_before_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set in order to be restored: the defect replaces them for good.
    for name in ("load", "store"):
        monkeypatch.setattr(processing, name, getattr(processing, name))
    monkeypatch.setattr(defects, "LOST_SHARE", 1.0)
    group = Group("billing", "0-0")
    before = processing.store(group, SizeLimits())
    defects.state_not_stored()
    loaded = processing.load(before)
    assert loaded is not None
    loaded.part.generation += 1
    assert processing.store(loaded, SizeLimits()) == before
    assert processing.store(group, SizeLimits()) == before


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
