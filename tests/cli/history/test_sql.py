"""``sql`` with mistakes, as an operator types them: one line, at once where that is possible, and nothing is left."""

import time
from pathlib import Path

import pytest

from streaming.cli.exit_codes import REFUSED, USAGE
from tests.cli.every_command.test_mistakes import tried
from tests.cli.test_commands import UNREACHABLE, run_for
from tests.support.coordinator_process import CoordinatorProcess


@pytest.fixture(scope="module")
def coordinator(young_coordinator: CoordinatorProcess) -> CoordinatorProcess:
    """In place of the one that most tests share."""
    return young_coordinator


@pytest.mark.parametrize("query", ["selec 1", "select nosuch from groups"])
def test_a_wrong_query_is_one_line_and_leaves_nothing_in_the_folder(
    coordinator: CoordinatorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run_for(coordinator, "sql", query)
    errors = [line for line in refused.stderr.splitlines() if line != "starting Spark"]
    assert (refused.returncode, len(errors)) == (USAGE, 1), refused.stderr
    assert errors[0].startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_brokers_that_do_not_answer_are_found_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    refused = tried("sql", "select 1", "-b", UNREACHABLE, "--timeout", "2")
    assert time.monotonic() - begin < 20
    waiting, error = refused.stderr.splitlines()
    assert (refused.exit_code, waiting) == (REFUSED, f"waiting for Kafka at {UNREACHABLE}, 2 s")
    assert error.startswith(f"error: Kafka at {UNREACHABLE}")
    assert "starting Spark" not in refused.output
    assert list(tmp_path.iterdir()) == []


def test_topics_that_are_not_there_are_found_before_spark_starts(coordinator: CoordinatorProcess) -> None:
    refused = tried("sql", "select 1", "-b", coordinator.bootstrap_servers, "--topic-prefix", "nosuch-")
    assert (refused.exit_code, refused.stderr) == (
        REFUSED,
        "error: topic 'nosuch-group-journal' does not exist: "
        "is the coordinator running, and is the topic prefix correct?\n",
    )
