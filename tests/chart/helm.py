"""Helm, which the tests build from its Go module, and what it makes of the chart."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.docs.markdown import ROOT
from tests.support.tools.go_tools import go_program

CHART = ROOT / "deploy" / "chart"

HELM, HELM_VERSION = "helm.sh/helm/v3/cmd/helm", "v3.22.0"

KUBERNETES_VERSION = "1.37.2"
"""The version whose schemas the tests use; a Helm that is built from its module takes a much older one otherwise."""

RELEASE, NAMESPACE = "gc", "kafka"

REQUIRED: Mapping[str, Any] = {"kafka": {"bootstrapServers": "kafka-1:9092"}}
"""The values without which the chart is refused."""

Values = Mapping[str, Any]
Manifest = dict[str, Any]


def run_helm(*arguments: str, values: Values | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm; ``values`` are those of a file, beside the required ones."""
    return subprocess.run(
        [go_program(HELM, HELM_VERSION), *arguments, *([] if values is None else ["--values", "-"])],
        input=None if values is None else json.dumps(merged(REQUIRED, values)),
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(values: Values) -> list[Manifest]:
    """The manifests of a release with these values, beside the required ones; not to be changed."""
    return _manifests(rendered_text(values))


def rendered_text(values: Values) -> str:
    """The same as one text of YAML."""
    return _rendered(json.dumps(values, sort_keys=True))


@cache
def _manifests(text: str) -> list[Manifest]:
    # Dashboards are long texts: the loader in Python takes seconds for them.
    return list(yaml.load_all(text, yaml.CSafeLoader))


@cache
def _rendered(values: str) -> str:
    done = template(json.loads(values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(values: Values, chart: Path = CHART, *more: str) -> subprocess.CompletedProcess[str]:
    """``helm template`` with these values, beside the required ones; it may fail."""
    options = ["--namespace", NAMESPACE, "--kube-version", KUBERNETES_VERSION]
    return run_helm("template", RELEASE, str(chart), *options, *more, values=values)


def merged(first: Values, second: Values) -> dict[str, Any]:
    """Two trees of values in one, as Helm merges files of values: the second one wins."""
    result = dict(first)
    for key, value in second.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def nested(path: str, value: object) -> dict[str, Any]:
    """A tree with this value at a path such as ``job.executors.cores``."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def leaves(values: Values, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a tree with its path; a list, and a table that is empty or free, is one value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value and f"{path}{key}" not in FREE_TABLES:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


FREE_TABLES = frozenset({"job.resources", "gateway.resources", "monitoring.dashboards.labels"})
"""Tables of values.yaml that have entries, and take any others."""


def default_values() -> dict[str, Any]:
    """The chart's values.yaml."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return values
