"""JSON Schemas of the kinds that the chart has, for kubeconform: without fields that Kubernetes does not know.

Kubernetes' come from its Go module, those of Prometheus' operator from that one's. The two operators for Spark publish
none in a package: ``schemas/`` describes the fields of theirs that the chart uses. The variable OPERATOR_CRDS names a
folder with the operators' own definitions (CustomResourceDefinition), which take the place of these descriptions.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.chart.helm import KUBERNETES_VERSION
from tests.support.tools.go_tools import go_module

KUBERNETES = "k8s.io/kubernetes"
PROMETHEUS_OPERATOR, PROMETHEUS_OPERATOR_VERSION = "github.com/prometheus-operator/prometheus-operator", "v0.85.0"
PROMETHEUS_KINDS = ("servicemonitors", "prometheusrules")

KINDS = {
    "v1_v1_configmap": "io.k8s.api.core.v1.ConfigMap",
    "v1_v1_pod": "io.k8s.api.core.v1.Pod",
    "v1_v1_persistentvolumeclaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "v1_v1_service": "io.k8s.api.core.v1.Service",
    "v1_v1_serviceaccount": "io.k8s.api.core.v1.ServiceAccount",
    "apps_v1_deployment": "io.k8s.api.apps.v1.Deployment",
    "apps_v1_statefulset": "io.k8s.api.apps.v1.StatefulSet",
    "networking.k8s.io_v1_networkpolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "policy_v1_poddisruptionbudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "rbac.authorization.k8s.io_v1_role": "io.k8s.api.rbac.v1.Role",
    "rbac.authorization.k8s.io_v1_rolebinding": "io.k8s.api.rbac.v1.RoleBinding",
}
"""Kubernetes' own, by the names that :data:`LOCATION` gives them."""

LOCATION = "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"
"""The name of a kind's file, as kubeconform writes such names."""

OWN_SCHEMAS = Path(__file__).with_name("schemas")
OPERATOR_CRDS_VARIABLE = "OPERATOR_CRDS"

SPECIAL: dict[str, Any] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}
"""Definitions that Kubernetes' own description narrows to a string."""

_REFERENCE = re.compile(r"#/definitions/([\w.-]+)")


def write_schemas(folder: Path) -> None:
    """Write the schemas of all kinds into a folder. Skips the test where Go, or a module, cannot be had."""
    definitions = _kubernetes_definitions()
    for name, definition in KINDS.items():
        _write(folder / f"{name}.json", _with_definitions({"$ref": f"#/definitions/{definition}"}, definitions))
    for path in sorted(OWN_SCHEMAS.glob("*.json")):
        _write(folder / path.name, _with_definitions(json.loads(path.read_text()), definitions))
    module = go_module(PROMETHEUS_OPERATOR, PROMETHEUS_OPERATOR_VERSION)
    published = module / "example" / "prometheus-operator-crd"
    files = [published / f"monitoring.coreos.com_{kind}.yaml" for kind in PROMETHEUS_KINDS]
    files += sorted(Path(os.environ[OPERATOR_CRDS_VARIABLE]).glob("*.yaml")) if _has_crds() else []
    for path in files:
        for name, schema in schemas_of_definition(yaml.safe_load(path.read_text())):
            _write(folder / f"{name}.json", schema)


def schemas_of_definition(definition: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the schema of each version of a CustomResourceDefinition."""
    spec = definition["spec"]
    for version in spec["versions"]:
        schema = _strict(version["schema"]["openAPIV3Schema"])
        schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
        yield f"{spec['group']}_{version['name']}_{spec['names']['kind'].lower()}", schema


def _has_crds() -> bool:
    return OPERATOR_CRDS_VARIABLE in os.environ


def _kubernetes_definitions() -> dict[str, Any]:
    module = go_module(KUBERNETES, f"v{KUBERNETES_VERSION}")
    described = json.loads((module / "api" / "openapi-spec" / "swagger.json").read_text())
    return {name: SPECIAL.get(name) or _strict(each) for name, each in described["definitions"].items()}


def _with_definitions(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema with the definitions to which it refers, and those to which these refer."""
    used: dict[str, Any] = {}
    waiting = _REFERENCE.findall(json.dumps(schema))
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = definitions[name]
            waiting += _REFERENCE.findall(json.dumps(used[name]))
    return {**schema, "definitions": used}


def _strict(schema: Any) -> Any:
    """The same schema, whose objects have no fields but those that it names."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    strict = {key: _strict(value) for key, value in schema.items()}
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not is_open:
        strict["additionalProperties"] = False
    return strict


def _write(path: Path, schema: dict[str, Any]) -> None:
    path.write_text(json.dumps(schema))
