"""Prometheus' alert rules fire for their cause, and they and the dashboards use only metrics that exist."""

import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from docs.dashboards import expressions
from docs.generate import ROOT
from streaming.gateway.instrumentation import GatewayMetrics
from streaming.job.monitoring.metrics import Metrics
from tests.job.monitoring.test_metrics import port_of
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.tools.promtool import promtool
from tests.support.waiting import LIMIT_SECONDS

RULES = ROOT / "deploy" / "alerts.yml"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def names_in(texts: list[str]) -> set[str]:
    return {name for text in texts for name in re.findall(r"\bgroup_coordinator_\w+", text)}


def used() -> set[str]:
    return names_in([RULES.read_text(), *expressions()])


def registered(registry: CollectorRegistry) -> set[str]:
    return {family.name + suffix for family in registry.collect() for suffix in SUFFIXES.get(family.type, ("",))}


def test_rules_and_dashboards_use_metrics_that_the_job_or_the_gateway_registers() -> None:
    assert used() - registered(Metrics().registry) - registered(GatewayMetrics().registry) == set()


def test_rules_and_dashboards_use_metrics_that_a_running_job_serves(coordinator: CoordinatorProcess) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port_of(coordinator)}/metrics", timeout=LIMIT_SECONDS) as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    served = {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, ("",))}
    assert {name for name in used() if "_gateway_" not in name} - served == set()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rules beside their tests, as promtool looks for them."""
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("alerts_test.yml"), tmp_path)
    return tmp_path


def run_promtool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([promtool(), *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_rules_fire_for_their_cause_and_not_in_ordinary_operation(folder: Path) -> None:
    checked = run_promtool(folder, "test", "rules", "alerts_test.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_rule_has_a_case_in_which_it_fires(folder: Path) -> None:
    rules = RULES.read_text()
    alerts = set(re.findall(r"alert: (\w+)", rules))
    firing = re.findall(r'alertname="(\w+)"', (folder / "alerts_test.yml").read_text())
    assert alerts == set(firing)


def test_prometheus_accepts_the_configuration_of_compose(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "deploy" / "prometheus.yml", tmp_path)
    checked = run_promtool(tmp_path, "check", "config", "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
