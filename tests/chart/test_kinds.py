"""Kubernetes, Prometheus' operator and the operators for Spark know each field of what the chart renders."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart import kinds
from tests.chart.cases import APACHE, CASES, EXECUTORS, KUBEFLOW
from tests.chart.helm import KUBERNETES_VERSION, Values, rendered, rendered_text
from tests.support.tools.go_tools import go_program

KUBECONFORM, KUBECONFORM_VERSION = "github.com/yannh/kubeconform/cmd/kubeconform", "v0.8.0"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the schemas of all kinds."""
    folder = tmp_path_factory.mktemp("schemas")
    kinds.write_schemas(folder)
    return folder


def validated(text: str, schemas: Path) -> subprocess.CompletedProcess[str]:
    """Kubeconform's verdict on manifests. A kind without a schema is an error."""
    options = ["-strict", "-summary", "-kubernetes-version", KUBERNETES_VERSION]
    options += ["-schema-location", f"{schemas}/{kinds.LOCATION}"]
    program = go_program(KUBECONFORM, KUBECONFORM_VERSION)
    return subprocess.run([program, *options], input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", CASES)
def test_each_case_is_valid(path: str, schemas: Path) -> None:
    done = validated(rendered_text(CASES[path].values(path)), schemas)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "values", [{}, EXECUTORS, KUBEFLOW, APACHE], ids=["default", "executors", "Kubeflow", "Apache"]
)
def test_a_field_that_nobody_knows_is_found(values: Values, schemas: Path) -> None:
    text = rendered_text(values)
    for field, unknown in (("securityContext:", "securityContexts:"), ("serviceAccount", "serviceAcount")):
        assert validated(text.replace(field, unknown), schemas).returncode == 1


def test_the_executors_pods_are_valid_and_as_guarded_as_the_others(schemas: Path) -> None:
    (template,) = [
        each["data"]["executor.yaml"]
        for each in rendered(EXECUTORS)
        if each["kind"] == "ConfigMap" and "executor.yaml" in each["data"]
    ]
    done = validated(template, schemas)
    assert done.returncode == 0, done.stdout
    assert yaml.safe_load(template)["kind"] == "Pod"


def test_the_own_schemas_are_those_of_the_kinds_without_a_package() -> None:
    names = {path.stem for path in kinds.OWN_SCHEMAS.glob("*.json")}
    assert names == {"sparkoperator.k8s.io_v1beta2_sparkapplication", "spark.apache.org_v1_sparkapplication"}
