"""The campaigns: a script, a run, a moment of each."""

import json
from pathlib import Path

import pytest

from tests.smokes.running import run

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1_000)]


def test_kafka_tests_play_a_profile(tmp_path: Path) -> None:
    assert "2 passed" in run("tests.kafka_tests", "session", results=tmp_path)


def test_oracle_compares_scripts_with_a_broker(tmp_path: Path) -> None:
    assert "0 differences" in run("tests.oracle", "--scripts", "5", results=tmp_path)


def test_oracle_consumer_compares_scripts_with_kafkas_manager(tmp_path: Path) -> None:
    assert "0 scripts differ" in run("tests.oracle.consumer", "--scripts", "3", results=tmp_path)


def test_soak_judges_the_slopes(tmp_path: Path) -> None:
    assert "wrote" in run("tests.soak", "--minutes", "0.2", "--members", "4", results=tmp_path)
    assert json.loads((tmp_path / "soak.json").read_text())["samples"]


def test_chaos_judges_a_run(tmp_path: Path) -> None:
    run("tests.recovery.chaos", "--runs", "1", "--seed", "1", "--only", "kill-driver", results=tmp_path)
    assert json.loads((tmp_path / "chaos" / "summary.json").read_text())["runs"] == 1


@pytest.mark.long
def test_chaos_broken_finds_a_defect(tmp_path: Path) -> None:
    printed = run("tests.recovery.chaos.broken", "--only", "random-member-ids", results=tmp_path)
    assert "NOT FOUND" not in printed
    assert "random-member-ids: seed" in printed
