"""YARN and HDFS on loopback, in one process: a resource manager, a node manager, a name node and a data node."""

import os
from pathlib import Path
from xml.sax.saxutils import escape

from streaming.embedded.jars import find_java, resolve_file
from streaming.embedded.ports import free_ports
from tests.support.processes import Process
from tests.support.waiting import wait_until

IVY_FILE = Path(__file__).with_name("hadoop.xml")
MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"

START_LIMIT_SECONDS = 300.0

OPENED = ("java.base/java.lang", "java.base/java.util")
"""Packages of Java's that Hadoop looks into."""

NODE = {
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.scheduler.minimum-allocation-mb": "64",
    # A container of Java reserves more address space than it uses.
    "yarn.nodemanager.vmem-check-enabled": "false",
    # A disk that is nearly full is a matter of this machine.
    "yarn.nodemanager.disk-health-checker.enable": "false",
}

RESOURCE_MANAGER = tuple(
    f"yarn.resourcemanager.{name}" for name in ("scheduler", "resource-tracker", "admin", "webapp")
)


class Hadoop(Process):
    """The cluster; ``configuration`` is the folder that a client finds it with, by ``HADOOP_CONF_DIR``.

    As a context manager, it is killed at the end.
    """

    def __init__(self, folder: Path) -> None:
        self._details = folder / "details.json"
        self.configuration = folder / "configuration"
        manager, name_node, name_node_web, history, history_web, *others = free_ports(5 + len(RESOURCE_MANAGER))
        addresses = {
            f"{name}.address": f"localhost:{port}" for name, port in zip(RESOURCE_MANAGER, others, strict=True)
        }
        self._client = {
            "yarn.resourcemanager.hostname": "localhost",
            "yarn.resourcemanager.address": f"localhost:{manager}",
            **addresses,
        }
        settings = {**NODE, **addresses, "mapreduce.jobhistory.webapp.address": f"localhost:{history_web}"}
        super().__init__(
            "YARN and HDFS",
            [
                find_java(),
                *("-Xmx512m", "-XX:+UseSerialGC", f"-Dtest.build.data={folder / 'data'}", f"-Dhadoop.log.dir={folder}"),
                *(word for package in OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")),
                *("-cp", os.pathsep.join(map(str, resolve_file(IVY_FILE, ("minicluster",))[0])), MAIN),
                *("-format", "-nodemanagers", "1", "-datanodes", "1", "-rmport", str(manager)),
                *("-nnport", str(name_node), "-nnhttpport", str(name_node_web), "-jhsport", str(history)),
                *("-writeDetails", str(self._details)),
                *(word for key, value in settings.items() for word in ("-D", f"{key}={value}")),
            ],
        )
        self.files = f"hdfs://localhost:{name_node}"

    def start(self) -> None:
        """Start it, and return when jobs can run."""
        self.configuration.mkdir(parents=True, exist_ok=True)
        (self.configuration / "core-site.xml").write_text(_site({"fs.defaultFS": self.files}))
        (self.configuration / "yarn-site.xml").write_text(_site(self._client))
        super().start()
        wait_until(self._is_up, "YARN and HDFS", START_LIMIT_SECONDS, describe=self.tail)

    def _is_up(self) -> bool:
        assert self.is_running, self.tail()
        return self._details.exists() and self._details.stat().st_size > 0


def _site(settings: dict[str, str]) -> str:
    properties = (
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in settings.items()
    )
    return f"<configuration>{''.join(properties)}</configuration>\n"
