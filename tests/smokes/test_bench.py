"""The measurements, each in its smallest form. Their figures say nothing; that they are there does."""

import json
from pathlib import Path

import pytest

from tests.bench.environment import ROOT
from tests.smokes.running import run

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1_000)]


def test_bench_measures_every_system(tmp_path: Path) -> None:
    run("tests.bench", "--smallest", results=tmp_path)
    (written,) = tmp_path.glob("*.json")
    measured = json.loads(written.read_text())
    assert len(measured["coordinators"]) == 5
    assert measured["population"]["groups"] == 20
    assert written.with_suffix(".md").read_text().count("|") > 100


def test_bench_compare_gives_the_ratio_of_each_figure(tmp_path: Path) -> None:
    run("tests.bench.compare", "--against", str(ROOT), "--smallest", results=tmp_path)
    (written,) = tmp_path.glob("compare-*.json")
    comparison = json.loads(written.read_text())
    assert comparison["this"].keys() == comparison["other"].keys()
    assert "kill -9 to first answer, s" in comparison["this"]


def test_bench_idle_measures_a_coordinator_without_groups_and_with_some(tmp_path: Path) -> None:
    run("tests.bench.idle", "--smallest", results=tmp_path)
    (written,) = tmp_path.glob("idle-*.json")
    (figures,) = json.loads(written.read_text())["idle"].values()
    assert [each["groups"] for each in figures] == [0, 20]


def test_bench_growth_has_a_point_of_each_curve(tmp_path: Path) -> None:
    run("tests.bench.growth", "--smallest", results=tmp_path)
    (written,) = tmp_path.glob("growth-*.json")
    growth = json.loads(written.read_text())
    assert [len(curve["points"]) for curve in growth["curves"]] == [1] * 6
    assert written.with_suffix(".png").stat().st_size > 0


def test_bench_operators_measures_each_operator(tmp_path: Path) -> None:
    run("tests.bench.operators", "--smallest", results=tmp_path)
    (written,) = tmp_path.glob("operators-*.json")
    assert json.loads(written.read_text())["figures"].keys() == {"arrow", "stock", "pandas", "rows"}
