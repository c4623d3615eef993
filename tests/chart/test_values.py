"""Each value of the chart has an effect, and the chart refuses what cannot work."""

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.chart.cases import ALERTS, BALANCERS, CASES, EXECUTORS, NODE_PORTS
from tests.chart.helm import (
    CHART,
    REQUIRED,
    Values,
    default_values,
    leaves,
    merged,
    nested,
    rendered,
    rendered_text,
    run_helm,
    template,
)

LEAVES = dict(leaves(default_values()))

WRITTEN_OTHERWISE = frozenset({"job.kind", "job.secretOptions", "gateway.secretOptions", "gateway.service.annotations"})
"""Values whose texts do not stand in the manifests as they are; other tests look at what becomes of them."""

REFUSED: dict[str, tuple[Values, str]] = {
    "an unknown value": ({"job": {"nope": 1}}, "additional properties 'nope' not allowed"),
    "no brokers": ({"kafka": {"bootstrapServers": ""}}, "/kafka/bootstrapServers"),
    "brokers without a port": ({"kafka": {"bootstrapServers": "kafka-1"}}, "/kafka/bootstrapServers"),
    "a checkpoint that is no address": ({"checkpoint": {"location": "s3://bucket/folder"}}, "/checkpoint/location"),
    "an option of Spark's from a Secret": (
        {"job": {"secretOptions": [{"option": "spark.x", "secret": "a", "key": "b"}]}},
        "/job/secretOptions/0/option",
    ),
    "a SparkApplication without executors": ({"job": {"kind": "KubeflowSparkApplication"}}, "job.executors.instances:"),
    "a standby without its volume": (
        {"checkpoint": {"volume": {"accessMode": "ReadWriteOnce"}}},
        "checkpoint.volume.accessMode:",
    ),
    "executors without their volume": (
        {"job": {"replicas": 1, **EXECUTORS["job"]}, "checkpoint": {"volume": {"accessMode": "ReadWriteOnce"}}},
        "checkpoint.volume.accessMode:",
    ),
    "load balancers without a name": (
        {"gateway": {"service": {"type": "LoadBalancer"}}},
        "gateway.advertisedHost:",
    ),
    "node ports below their range": ({"gateway": {"service": {"type": "NodePort"}}}, "gateway.port:"),
    "node ports beyond their range": (
        {"gateway": {"port": 32766, "service": {"type": "NodePort"}}},
        "gateway.port:",
    ),
}


def test_each_value_has_a_case() -> None:
    assert sorted(CASES) == sorted(LEAVES)


@pytest.mark.parametrize("path", CASES)
def test_a_changed_value_changes_what_is_rendered(path: str) -> None:
    case = CASES[path]
    changed, unchanged = rendered_text(case.values(path)), rendered_text(case.beside)
    assert changed != unchanged
    if path not in WRITTEN_OTHERWISE:
        assert [text for text in texts_in(case.value) if text not in changed] == []


def texts_in(value: object) -> list[str]:
    """The keys and texts in a value."""
    if isinstance(value, dict):
        return [text for key, below in value.items() for text in (key, *texts_in(below))]
    if isinstance(value, list):
        return [text for below in value for text in texts_in(below)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("path", CASES)
def test_lint_accepts_each_case(path: str) -> None:
    done = run_helm("lint", "--strict", str(CHART), values=CASES[path].values(path))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("values", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_with_the_value_to_change(values: Values, reason: str) -> None:
    done = template(values)
    assert done.returncode != 0
    assert reason in done.stderr


def test_the_chart_without_brokers_is_refused() -> None:
    assert "bootstrapServers" in run_helm("template", str(CHART)).stderr


def test_the_schema_knows_the_type_of_each_value() -> None:
    schema: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    validator.validate(merged(default_values(), REQUIRED))
    accepted = [
        path
        for path in LEAVES
        if validator.is_valid(merged(REQUIRED, nested(path, [["no value has this type"]])))
        or validator.is_valid(merged(REQUIRED, nested(path, None)))
    ]
    assert accepted == []


def test_values_in_a_table_of_options_win_over_the_charts_own() -> None:
    values = {"job": {"options": {"profile": "latency"}}, "gateway": {"options": {"first-contact": "off"}}}
    text = rendered_text(values)
    assert re.findall(r'"profile" = "(\w+)"', text) == ["latency"]
    assert '"first-contact" = "off"' in text


@pytest.mark.parametrize(
    ("values", "addresses"),
    [
        ({}, ["gc-group-coordinator-gateway.kafka.svc:19092"]),
        (BALANCERS, [f"gc-group-coordinator-gateway-{replica}.kafka.example.org:19092" for replica in range(2)]),
        (NODE_PORTS, ["any node with a gateway, port 30092"]),
        ({"gateway": {"enabled": False}}, []),
    ],
    ids=["in the cluster", "load balancers", "node ports", "no gateway"],
)
def test_the_notes_name_the_addresses_for_clients(values: Values, addresses: list[str], tmp_path: Path) -> None:
    notes = notes_of(values, tmp_path / "chart")
    assert re.findall(r"^    ((?!kubectl).+)$", notes, re.MULTILINE) == addresses
    assert "No job stands by" not in notes


def test_the_notes_warn_without_a_standby(tmp_path: Path) -> None:
    assert "No job stands by" in notes_of({"job": {"replicas": 1}}, tmp_path / "chart")


def notes_of(values: Values, folder: Path) -> str:
    """The text that Helm shows after an installation, which needs a cluster: here as a manifest of a copied chart."""
    shutil.copytree(CHART, folder)
    notes = folder / "templates" / "NOTES.txt"
    manifest = 'kind: ConfigMap\ndata:\n  notes: |\n    {{- include "notes" . | nindent 4 }}\n'
    (folder / "templates" / "notes.yaml").write_text(
        f'{{{{ define "notes" }}}}{notes.read_text()}{{{{ end }}}}{manifest}'
    )
    notes.unlink()
    done = template(values, folder, "--show-only", "templates/notes.yaml")
    assert done.returncode == 0, done.stderr
    shown: str = yaml.safe_load(done.stdout)["data"]["notes"]
    return shown


def test_the_rules_are_those_of_the_project_without_the_one_for_a_standby_if_there_is_none() -> None:
    def alerts(values: Values) -> list[str]:
        (rule,) = [each for each in rendered(merged(ALERTS, values)) if each["kind"] == "PrometheusRule"]
        return [each["alert"] for group in rule["spec"]["groups"] for each in group["rules"]]

    written = re.findall(r"alert: (\w+)", (CHART.parent / "alerts.yml").read_text())
    assert alerts({}) == written
    assert alerts({"job": {"replicas": 1}}) == [each for each in written if each != "CoordinatorHasNoStandby"]


def test_a_package_has_the_rules_and_dashboards_of_the_project(tmp_path: Path) -> None:
    done = run_helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as packed:
        packed.extractall(tmp_path, filter="data")
    folder = tmp_path / "group-coordinator"
    assert (folder / "files" / "alerts.yml").read_text() == (CHART.parent / "alerts.yml").read_text()
    dashboards = sorted((CHART.parent / "grafana").glob("*.json"))
    assert [path.name for path in sorted((folder / "files" / "dashboards").iterdir())] == [
        path.name for path in dashboards
    ]
    assert template(ALERTS, folder).stdout == rendered_text(ALERTS)
