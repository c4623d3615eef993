"""The command that tries other versions of pyspark, with the installed one; and the table that it writes."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from streaming.job.spark_internals import trials
from streaming.job.spark_internals.registry import INTERNALS
from streaming.job.spark_internals.trials import TRIALS, Trial
from tests.spark_next.__main__ import broken_promises
from tests.spark_next.entries import NAMES, PREREQUISITES, TESTS
from tests.spark_next.environments import ROOT, connector_version
from tests.spark_next.record import source
from tests.spark_next.trying import failed_of

LIMIT_SECONDS = 300.0


@pytest.mark.jvm
def test_the_installed_pyspark_has_all_names_and_an_internals_tests_pass() -> None:
    arguments = ["--installed", "--without-job", "--internals", "arrow-worker", "batch-end", "log-categories"]
    command = [sys.executable, "-m", "tests.spark_next", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["arrow-worker", "held"] in rows
    assert ["batch-end", "held"] in rows
    assert ["log-categories", "(any", "version)", "held"] in rows
    assert ["own-jvm"] in rows, "it was not tried"


def test_every_internal_with_tests_is_in_the_table_and_the_tests_exist() -> None:
    assert TESTS.keys() | PREREQUISITES.keys() <= set(NAMES)
    for nodes in TESTS.values():
        for node in nodes:
            file, _, test = node.partition("::")
            assert not test or f"def {test}(" in (ROOT / file).read_text(), node


def test_the_project_was_tried_with_the_versions_that_it_pins() -> None:
    trial = TRIALS[pyspark.__version__]
    assert set(trial.held) == {internal.name for internal in INTERNALS}
    assert trial.connector == connector_version()


def test_every_trial_is_of_internals_of_the_table() -> None:
    for trial in TRIALS.values():
        assert {*trial.held, *trial.failed} <= set(NAMES)
        assert not set(trial.held) & trial.failed.keys()


def test_the_table_is_written_as_it_is_and_versions_are_sorted_by_age() -> None:
    assert source(TRIALS) == Path(trials.__file__).read_text()
    added = source({"10.0.0": Trial("10.0.0", (), {"own-jvm": 'there is no "x"'}), **TRIALS})
    assert added.index('"4.2.0": Trial(') < added.index('"10.0.0": Trial(')
    assert (
        """        held=(),
        failed={
            "own-jvm": "there is no \\"x\\"",
        },
"""
        in added
    )


def test_what_is_listed_as_held_must_hold() -> None:
    failed = Trial("4.2.0", (), {"own-jvm": "there is no x"})
    (line,) = broken_promises({"4.2.0": failed, "10.0.0": failed})
    assert line == "own-jvm is listed as tried with pyspark 4.2.0, and fails: there is no x"


def test_a_failed_test_counts_for_the_internals_that_list_it(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.job.spark_internals.test_own_jvm" name="test_it"><failure message="a&#10;b"/>'
        "</testcase>"
        '<testcase classname="tests.job.test_query" name="test_another[x]"><failure message="c"/></testcase>'
        '<testcase classname="" name="tests.job.spark_internals.test_arrow_worker"><error message="no import"/>'
        "</testcase>"
        '<testcase classname="tests.job.spark_internals.test_class_archive" name="test_fine"/>'
        "</testsuite></testsuites>"
    )
    assert failed_of(NAMES, results) == {
        "own-jvm": "test_it: a",
        "arrow-worker": "tests.job.spark_internals.test_arrow_worker: no import",
    }
