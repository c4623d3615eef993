"""Each value of the chart, changed once: together, the cases use every branch of its templates."""

from dataclasses import dataclass, field
from typing import Any

from tests.chart.helm import Values, merged, nested


@dataclass(frozen=True)
class Case:
    """A changed value, and ``beside`` it the values without which nothing reads it."""

    value: Any
    beside: Values = field(default_factory=dict)

    def values(self, path: str) -> Values:
        """The values of the case, whose own value is at this path."""
        return merged(self.beside, nested(path, self.value))


EXECUTORS: Values = {"job": {"executors": {"instances": 2}}}
KUBEFLOW: Values = merged(EXECUTORS, {"job": {"kind": "KubeflowSparkApplication"}})
APACHE: Values = merged(EXECUTORS, {"job": {"kind": "ApacheSparkApplication"}})
STORE: Values = {"checkpoint": {"location": "s3a://bucket/coordinator"}}
BALANCERS: Values = {
    "gateway": {"service": {"type": "LoadBalancer"}, "advertisedHost": "$(POD_NAME).kafka.example.org"}
}
NODE_PORTS: Values = {"gateway": {"port": 30092, "service": {"type": "NodePort"}}}
POLICIES: Values = {"networkPolicy": {"enabled": True}}
MONITORS: Values = {"monitoring": {"serviceMonitor": {"enabled": True}}}
ALERTS: Values = {"monitoring": {"alerts": {"enabled": True}}}
DASHBOARDS: Values = {"monitoring": {"dashboards": {"enabled": True}}}

PEER = [{"namespaceSelector": {"matchLabels": {"name": "apps"}}}]
TOLERATION = [{"key": "dedicated", "operator": "Equal", "value": "spark", "effect": "NoSchedule"}]
SPREAD = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}}
        ]
    }
}
RESOURCES = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
LABELS = {"release": "prometheus"}

CASES = {
    "fullnameOverride": Case("coordinator"),
    "image.repository": Case("registry.example.org/group-coordinator", KUBEFLOW),
    "image.tag": Case("0.1.0-1", APACHE),
    "image.pullPolicy": Case("Always", APACHE),
    "image.pullSecrets": Case(["registry"], EXECUTORS),
    "kafka.bootstrapServers": Case("kafka-1:9092,kafka-2:9092"),
    "kafka.topicPrefix": Case("blue-"),
    "kafka.filesSecret": Case("kafka-files", EXECUTORS),
    "identityKeySecret": Case("identity", KUBEFLOW),
    "checkpoint.location": Case("s3a://bucket/coordinator", POLICIES),
    "checkpoint.s3.endpoint": Case("http://minio:9000", STORE),
    "checkpoint.s3.region": Case("eu-central-1", STORE),
    "checkpoint.s3.pathStyleAccess": Case(True, STORE),
    "checkpoint.s3.credentialsSecret": Case("store", merged(STORE, EXECUTORS)),
    "checkpoint.volume.existingClaim": Case("shared", EXECUTORS),
    "checkpoint.volume.storageClass": Case("nfs"),
    "checkpoint.volume.accessMode": Case("ReadWriteOnce", {"job": {"replicas": 1}}),
    "checkpoint.volume.size": Case("100Gi"),
    "job.kind": Case("ApacheSparkApplication", EXECUTORS),
    "job.replicas": Case(1, ALERTS),
    "job.profile": Case("object-store"),
    "job.driverMemory": Case("2g", APACHE),
    "job.options": Case({"group.max.size": 12345678, "kafka.security.protocol": "SSL", "spark.ui.enabled": True}),
    "job.secretOptions": Case([{"option": "kafka.sasl.jaas.config", "secret": "kafka-job", "key": "jaas"}], KUBEFLOW),
    "job.executors.instances": Case(2, POLICIES),
    "job.executors.cores": Case(2, KUBEFLOW),
    "job.executors.memory": Case("2g", APACHE),
    "job.executors.memoryOverhead": Case("512m", EXECUTORS),
    "job.resources": Case(RESOURCES),
    "job.driver.cores": Case(2, KUBEFLOW),
    "job.driver.memoryOverhead": Case("2g", APACHE),
    "job.serviceAccountAnnotations": Case({"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/coordinator"}),
    "job.podAnnotations": Case({"example.org/owner": "platform"}, APACHE),
    "job.nodeSelector": Case({"disk": "ssd"}, EXECUTORS),
    "job.tolerations": Case(TOLERATION, KUBEFLOW),
    "job.affinity": Case(SPREAD),
    "job.priorityClassName": Case("high", APACHE),
    "gateway.enabled": Case(False, merged(merged(POLICIES, MONITORS), ALERTS)),
    "gateway.replicas": Case(3, BALANCERS),
    "gateway.port": Case(29092, POLICIES),
    "gateway.brokers": Case(5, NODE_PORTS),
    "gateway.service.type": Case("NodePort", {"gateway": {"port": 30092}}),
    "gateway.service.annotations": Case(
        {"external-dns.alpha.kubernetes.io/hostname": "$(POD_NAME).kafka.example.org"}, BALANCERS
    ),
    "gateway.advertisedHost": Case("$(HOST_IP)"),
    "gateway.tlsSecret": Case("gateway-tls"),
    "gateway.shutdownGraceMs": Case(60000),
    "gateway.options": Case({"max-connections": 1000, "hide-offsets-topic": True}),
    "gateway.secretOptions": Case([{"option": "kafka.sasl.password", "secret": "kafka-gateway", "key": "password"}]),
    "gateway.resources": Case(RESOURCES),
    "gateway.podAnnotations": Case({"example.org/owner": "platform"}),
    "gateway.nodeSelector": Case({"disk": "ssd"}),
    "gateway.tolerations": Case(TOLERATION),
    "gateway.affinity": Case(SPREAD, NODE_PORTS),
    "gateway.priorityClassName": Case("high"),
    "tmp.sizeLimit": Case("4Gi", EXECUTORS),
    "monitoring.serviceMonitor.enabled": Case(True),
    "monitoring.serviceMonitor.interval": Case("30s", MONITORS),
    "monitoring.serviceMonitor.labels": Case(LABELS, MONITORS),
    "monitoring.alerts.enabled": Case(True),
    "monitoring.alerts.labels": Case(LABELS, ALERTS),
    "monitoring.dashboards.enabled": Case(True),
    "monitoring.dashboards.labels": Case({"dashboards": "yes"}, DASHBOARDS),
    "networkPolicy.enabled": Case(True, EXECUTORS),
    "networkPolicy.kafkaPorts": Case([9093, 9094], POLICIES),
    "networkPolicy.storePorts": Case([9000], merged(POLICIES, STORE)),
    "networkPolicy.apiServerPorts": Case([6443], merged(POLICIES, EXECUTORS)),
    "networkPolicy.clients": Case(PEER, POLICIES),
    "networkPolicy.monitoring": Case(PEER, POLICIES),
}
"""By the path of the value."""
