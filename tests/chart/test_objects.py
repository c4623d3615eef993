"""What schemas cannot say of the rendered objects: addresses, guards, names and references fit together."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.cases import APACHE, BALANCERS, CASES, EXECUTORS, KUBEFLOW, NODE_PORTS, POLICIES
from tests.chart.commands import POD, containers, pod_templates, rendered_commands
from tests.chart.helm import CHART, Manifest, Values, merged, rendered
from tests.docs.markdown import ROOT

KINDS = {"local": {}, "executors": EXECUTORS, "Kubeflow": KUBEFLOW, "Apache": APACHE}


def of_kind(kind: str, values: Values) -> list[Manifest]:
    return [each for each in rendered(values) if each["kind"] == kind]


def all_pods(values: Values) -> Iterator[Manifest]:
    """The templates of all pods, also of those that a driver makes from a file."""
    for manifest in rendered(values):
        yield from pod_templates(manifest)
        if "executor.yaml" in manifest.get("data", {}):
            yield yaml.safe_load(manifest["data"]["executor.yaml"])


def selected(selector: dict[str, str], pods: list[Manifest]) -> list[Manifest]:
    return [each for each in pods if selector.items() <= each["metadata"]["labels"].items()]


# ---- addresses of gateways -------------------------------------------------------------------------------------


def broker_ports(service: Manifest) -> list[int]:
    """The ports of the brokers' listeners, each the same inside and outside."""
    ports = service["spec"]["ports"]
    assert all(each["port"] == each["targetPort"] == each.get("nodePort", each["port"]) for each in ports)
    return [each["port"] for each in ports]


def advertised(values: Values) -> tuple[str, int]:
    """The host and the first port of the first gateway."""
    (command,) = [each for each in rendered_commands(values) if each.container == "gateway"]
    arguments = command.arguments
    listen = re.search(r'"listen" = "0\.0\.0\.0:(\d+)"', command.files["/etc/group-coordinator/gateway/gateway.toml"])
    assert listen is not None
    return arguments[arguments.index("--advertised-host") + 1], int(listen[1])


def test_in_the_cluster_a_gateway_advertises_its_own_name() -> None:
    (service,) = of_kind("Service", {})
    (gateways,) = of_kind("StatefulSet", {})
    assert gateways["spec"]["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    host, port = advertised({})
    assert host == f"{POD['metadata.name']}.{service['metadata']['name']}.kafka.svc"
    assert broker_ports(service) == [port, port + 1, port + 2]


def test_each_gateway_has_a_load_balancer_with_its_name() -> None:
    balancers = [each for each in of_kind("Service", BALANCERS) if each["spec"].get("type") == "LoadBalancer"]
    pods = [each["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] for each in balancers]
    assert pods == ["gc-group-coordinator-gateway-0", "gc-group-coordinator-gateway-1"]
    host, port = advertised(BALANCERS)
    assert host == f"{pods[0]}.kafka.example.org"
    assert all(broker_ports(each) == [port, port + 1, port + 2] for each in balancers)
    annotated = CASES["gateway.service.annotations"].values("gateway.service.annotations")
    names = [each["metadata"].get("annotations") for each in of_kind("Service", annotated)][1:]
    assert names == [{"external-dns.alpha.kubernetes.io/hostname": f"{pod}.kafka.example.org"} for pod in pods]


def test_a_node_leads_to_its_own_gateway() -> None:
    (service,) = [each for each in of_kind("Service", NODE_PORTS) if each["spec"].get("type") == "NodePort"]
    assert service["spec"]["externalTrafficPolicy"] == "Local"
    assert advertised(NODE_PORTS) == (POD["status.hostIP"], 30092)
    assert broker_ports(service) == [30092, 30093, 30094]
    (gateways,) = of_kind("StatefulSet", NODE_PORTS)
    (rule,) = gateways["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert selected(rule["labelSelector"]["matchLabels"], [gateways["spec"]["template"]])


# ---- guards ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_every_pod_is_guarded(values: Values) -> None:
    pods = list(all_pods(values))
    assert (
        len(pods)
        == {"local": 2, "executors": 3, "Kubeflow": 5, "Apache": 5}[
            next(name for name, each in KINDS.items() if each == values)
        ]
    )
    for pod in pods:
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"]
        assert security["runAsUser"] == security["runAsGroup"] == security["fsGroup"] == 10001
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "/tmp" in [each["mountPath"] for each in container["volumeMounts"]]


@pytest.mark.parametrize("path", CASES)
def test_nothing_is_secret_in_what_is_rendered_and_every_name_has_its_object(path: str) -> None:
    values = CASES[path].values(path)
    assert of_kind("Secret", values) == []
    names = {(each["kind"], each["metadata"]["name"]) for each in rendered(values)}
    assert len(names) == len(rendered(values))
    for pod in all_pods(values):
        spec = pod["spec"]
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in names
            if (claim := volume.get("persistentVolumeClaim", {}).get("claimName")) is not None:
                assert claim == "shared" or ("PersistentVolumeClaim", claim) in names
        mounted = {each["name"] for container in spec["containers"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in spec["volumes"]}
        if "serviceAccountName" in spec:
            assert ("ServiceAccount", spec["serviceAccountName"]) in names


@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_only_a_driver_with_executors_reaches_the_api_server(values: Values) -> None:
    with_token = [each for each in all_pods(values) if each["spec"]["automountServiceAccountToken"]]
    assert {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in with_token} == (
        set() if values == {} else {"job"}
    )
    assert len(of_kind("RoleBinding", values)) == (values != {})


# ---- selectors and ports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_selector_finds_pods_and_every_named_port_is_theirs(kind: Values) -> None:
    values = merged(merged(kind, POLICIES), {"monitoring": {"serviceMonitor": {"enabled": True}}})
    pods = list(all_pods(values))
    for manifest in rendered(values):
        for selector, ports in selectors(manifest):
            found = selected(selector, pods)
            assert found, selector
            for pod in found:
                named = {each["name"] for each in pod["spec"]["containers"][0].get("ports", [])}
                assert ports <= named


def selectors(manifest: Manifest) -> Iterator[tuple[dict[str, str], set[str]]]:
    """Each selector of pods in a manifest, and the names of ports that it uses with them."""
    spec: dict[str, Any] = manifest.get("spec", {})
    if manifest["kind"] == "Service":
        yield spec["selector"], {each["targetPort"] for each in spec["ports"] if isinstance(each["targetPort"], str)}
    elif manifest["kind"] == "PodDisruptionBudget":
        yield spec["selector"]["matchLabels"], set()
    elif manifest["kind"] == "NetworkPolicy":
        ports = [port["port"] for rule in spec["ingress"] for port in rule.get("ports", [])]
        yield spec["podSelector"]["matchLabels"], {each for each in ports if isinstance(each, str)}
        for rule in (*spec["ingress"], *spec["egress"]):
            for peer in (*rule.get("from", []), *rule.get("to", [])):
                yield peer["podSelector"]["matchLabels"], set()


def test_a_monitor_finds_its_service() -> None:
    values = {"monitoring": {"serviceMonitor": {"enabled": True}}}
    services = [(each["metadata"]["labels"], each["spec"]["ports"]) for each in of_kind("Service", values)]
    monitors = of_kind("ServiceMonitor", values)
    assert len(monitors) == 2
    for monitor in monitors:
        labels = monitor["spec"]["selector"]["matchLabels"]
        ((_, ports),) = [each for each in services if labels.items() <= each[0].items()]
        assert [each["name"] for each in ports] == [each["port"] for each in monitor["spec"]["endpoints"]]


@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_every_command_of_ours_is_probed_at_pages_that_it_serves(values: Values) -> None:
    for manifest in rendered(values):
        for _, _, container in containers(manifest):
            probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
            assert {each["port"] for each in probes} == {"metrics"}
            assert {each["path"] for each in probes} <= {"/health/live", "/health/ready"}


def test_a_standby_counts_as_ready_so_that_upgrades_go_on() -> None:
    (job,) = of_kind("Deployment", {})
    assert job["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/health/live"
    assert job["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    alone = {"job": {"replicas": 1}, "checkpoint": {"volume": {"accessMode": "ReadWriteOnce"}}}
    (job,) = of_kind("Deployment", alone)
    assert job["spec"]["strategy"] == {"type": "Recreate"}


def test_dashboards_are_those_of_the_project() -> None:
    maps = of_kind("ConfigMap", {"monitoring": {"dashboards": {"enabled": True}}})
    found = {name: text for each in maps for name, text in each["data"].items() if name.endswith(".json")}
    assert sorted(found) == ["engine.json", "fleet.json", "group.json"]
    assert all(
        each["metadata"]["labels"].get("grafana_dashboard") for each in maps if "dashboard" in each["metadata"]["name"]
    )


def test_the_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]
    (pyspark,) = re.findall(r'"pyspark==([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    versions = [each["spec"] for values in (KUBEFLOW, APACHE) for each in of_kind("SparkApplication", values)]
    assert {each.get("sparkVersion") or each["runtimeVersions"]["sparkVersion"] for each in versions} == {pyspark}
