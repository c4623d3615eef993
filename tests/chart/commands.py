"""The commands of the rendered containers, with the variables and files that Kubernetes would give them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.chart.helm import NAMESPACE, RELEASE, Manifest, Values, rendered

POD: Mapping[str, str] = {
    "metadata.name": f"{RELEASE}-group-coordinator-gateway-0",
    "metadata.namespace": NAMESPACE,
    "status.podIP": "10.0.0.7",
    "status.hostIP": "192.0.2.7",
}
"""What a pod is told about itself, by the path of the field."""

SECRETS: Mapping[str, Mapping[str, str]] = {
    "store": {"AWS_ACCESS_KEY_ID": "an-access-key", "AWS_SECRET_ACCESS_KEY": "a-secret-key"},
    "kafka-files": {"ca.pem": "a certificate"},
    "identity": {"identity.key": "0123456789abcdef" * 4},
    "gateway-tls": {"tls.crt": "a certificate", "tls.key": "a key"},
    "kafka-job": {
        "jaas": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="job" password="x";'
    },
    "kafka-gateway": {"password": "a-password"},
}
"""The Secrets that the cases of this folder refer to."""


@dataclass(frozen=True)
class RenderedCommand:
    """A container's command.

    ``arguments`` follow the image's entry point. With ``main_file`` an operator gives them to ``spark-submit``, for
    this file, with the settings ``spark_conf``. ``files`` are the texts of mounted ConfigMaps and Secrets by their
    path, ``folders`` can be written.
    """

    workload: str
    container: str
    image: str
    arguments: list[str]
    environment: dict[str, str]
    files: dict[str, str]
    folders: list[str]
    main_file: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def below(self, folder: Path) -> "RenderedCommand":
        """The same command with its files written below a folder, in place of the container's root."""

        def moved(text: str) -> str:
            return re.sub(r"(?<![\w/.-])/(?=etc/group-coordinator/|checkpoint\b)", f"{folder}/", text)

        for path, text in self.files.items():
            target = folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(moved(text))
        return replace(
            self,
            arguments=[moved(each) for each in self.arguments],
            files={moved(path): moved(text) for path, text in self.files.items()},
            folders=[moved(each) for each in self.folders],
        )


def rendered_commands(
    values: Values, secrets: Mapping[str, Mapping[str, str]] = SECRETS, pod: Mapping[str, str] = POD
) -> list[RenderedCommand]:
    """The commands of all containers of a release with these values, beside the required ones.

    Args:
        values: As in ``tests.chart.helm.rendered``.
        secrets: The contents of each Secret that the values name.
        pod: What the pod is told about itself, by the path of the field.
    """
    manifests = rendered(values)
    found = _Objects(manifests, secrets, pod)
    return [found.command(*container) for manifest in manifests for container in containers(manifest)]


def containers(manifest: Manifest) -> Iterator[tuple[Manifest, Manifest, dict[str, Any]]]:
    """The manifest, the pod's specification and the container, for each container that runs a command of ours."""
    for template in pod_templates(manifest):
        for container in template["spec"]["containers"]:
            if container["name"] != "executor":
                yield manifest, template["spec"], container


def pod_templates(manifest: Manifest) -> Iterator[Manifest]:
    """The templates of the pods that Kubernetes or an operator makes from a manifest."""
    spec = manifest.get("spec", {})
    if manifest["kind"] in ("Deployment", "StatefulSet"):
        yield spec["template"]
    elif manifest["apiVersion"].startswith("sparkoperator.k8s.io/"):
        yield from (spec["driver"]["template"], spec["executor"]["template"])
    elif manifest["apiVersion"].startswith("spark.apache.org/"):
        yield from (spec["driverSpec"]["podTemplateSpec"], spec["executorSpec"]["podTemplateSpec"])


class _Objects:
    """What the containers of a release refer to."""

    def __init__(
        self, manifests: list[Manifest], secrets: Mapping[str, Mapping[str, str]], pod: Mapping[str, str]
    ) -> None:
        self._texts = {each["metadata"]["name"]: each["data"] for each in manifests if each["kind"] == "ConfigMap"}
        self._secrets = secrets
        self._pod = pod

    def command(self, manifest: Manifest, pod: Manifest, container: dict[str, Any]) -> RenderedCommand:
        environment = {each["name"]: self._value(each) for each in container.get("env", [])}
        spec = manifest["spec"]
        main_file = spec.get("mainApplicationFile") or spec.get("pyFiles")
        arguments = container.get("args") or spec.get("arguments") or spec.get("driverArgs")
        files, folders = self._mounted(pod, container)
        return RenderedCommand(
            f"{manifest['kind']}/{manifest['metadata']['name']}",
            container["name"],
            container["image"],
            [expanded(each, environment) for each in arguments],
            environment,
            files,
            folders,
            main_file,
            spec.get("sparkConf", {}),
        )

    def _value(self, variable: dict[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        source = variable["valueFrom"]
        if "fieldRef" in source:
            return self._pod[source["fieldRef"]["fieldPath"]]
        reference = source["secretKeyRef"]
        return self._secrets[reference["name"]][reference["key"]]

    def _mounted(self, pod: Manifest, container: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
        volumes = {each["name"]: each for each in pod["volumes"]}
        files: dict[str, str] = {}
        folders = []
        for mount in container["volumeMounts"]:
            volume, path = volumes[mount["name"]], mount["mountPath"]
            if "configMap" in volume:
                files |= _below(path, self._texts[volume["configMap"]["name"]])
            elif "secret" in volume:
                files |= _below(path, self._secrets[volume["secret"]["secretName"]])
            else:
                folders.append(path)
        return files, folders


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """An argument with its ``$(NAME)`` replaced, as Kubernetes does it. Raises KeyError for an unknown name."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], text)


def _below(folder: str, texts: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in texts.items()}
