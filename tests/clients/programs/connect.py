"""A worker of Kafka Connect in distributed mode, and its REST interface."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streaming.embedded.ports import free_address
from tests.clients.group import KILLED_SESSION_MS
from tests.clients.programs.java import connect_worker
from tests.support.processes import Process
from tests.support.waiting import LIMIT_SECONDS, wait_until

__all__ = ["ConnectWorker"]

STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"


class ConnectWorker(Process):
    """A worker of the Connect cluster ``group_id``; ``address`` (``host:port``) is that of its REST interface."""

    def __init__(self, name: str, bootstrap_servers: str, group_id: str, folder: Path) -> None:
        self.address = free_address()
        properties = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group_id,
            # Longer than a restart of coordinator and gateway, which must not cost a worker its membership.
            "session.timeout.ms": 2 * KILLED_SESSION_MS,
            # For the sink's consumer, which dies with a killed worker.
            "consumer.session.timeout.ms": KILLED_SESSION_MS,
            "heartbeat.interval.ms": 500,
            # By default, the tasks of a lost worker wait five minutes for its return.
            "scheduled.rebalance.max.delay.ms": 0,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            **{f"{topic}.storage.topic": f"{group_id}-{topic}" for topic in ("config", "offset", "status")},
            **{f"{topic}.storage.replication.factor": 1 for topic in ("config", "offset", "status")},
            **{f"{topic}.storage.partitions": 1 for topic in ("offset", "status")},
            "offset.flush.interval.ms": 500,
            "listeners": f"http://{self.address}",
            # The default scans the whole class path, which takes longer than the rest of the start.
            "plugin.discovery": "service_load",
        }
        file = folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        super().__init__(name, connect_worker(file))

    def create(self, connector: str, config: Mapping[str, object]) -> None:
        """Create a connector, once the worker is a member of the cluster."""
        body = json.dumps({key: str(value) for key, value in config.items()}).encode()

        def created() -> bool:
            self._request(f"/connectors/{connector}/config", body)
            return True

        wait_until(created, f"connector {connector} created", describe=self.tail, ignore=(OSError,), pause=0.1)

    def task_workers(self, connector: str) -> set[str]:
        """The addresses of the workers that run the connector's tasks at the moment."""
        status = self._request(f"/connectors/{connector}/status")
        return {task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING"}

    def _request(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data=body,
            method="GET" if body is None else "PUT",
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as response:
            return json.load(response)
