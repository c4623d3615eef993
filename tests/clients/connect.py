"""A worker of Kafka Connect in distributed mode, and its REST interface."""

import json
import socket
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clients.group import KILLED_SESSION_MS
from tests.clients.java import connect_worker
from tests.clients.process import Process
from tests.clients.waiting import LIMIT_SECONDS, await_condition

__all__ = ["ConnectWorker"]

STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"


class ConnectWorker(Process):
    """A worker of the Connect cluster ``group_id``. ``address`` is where its REST interface listens, ``host:port``."""

    def __init__(self, name: str, bootstrap_servers: str, group_id: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        properties = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group_id,
            # Enough for a restart of coordinator and gateway, of which no worker may take notice.
            "session.timeout.ms": 2 * KILLED_SESSION_MS,
            # Of the sink's consumer, which a worker that is killed takes with it.
            "consumer.session.timeout.ms": KILLED_SESSION_MS,
            "heartbeat.interval.ms": 500,
            # By default, the tasks of a worker that is gone wait five minutes for its return.
            "scheduled.rebalance.max.delay.ms": 0,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            **{f"{topic}.storage.topic": f"{group_id}-{topic}" for topic in ("config", "offset", "status")},
            **{f"{topic}.storage.replication.factor": 1 for topic in ("config", "offset", "status")},
            **{f"{topic}.storage.partitions": 1 for topic in ("offset", "status")},
            "offset.flush.interval.ms": 500,
            "listeners": f"http://{self.address}",
            # The default searches the whole class path for plugins, which takes longer than all the rest.
            "plugin.discovery": "service_load",
        }
        file = folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        super().__init__(name, connect_worker(file))

    def create(self, connector: str, config: Mapping[str, object]) -> None:
        """Create a connector, as soon as the worker is a member of the cluster."""
        body = json.dumps({key: str(value) for key, value in config.items()}).encode()

        def created() -> bool:
            self._ask(f"/connectors/{connector}/config", body)
            return True

        await_condition(f"connector {connector} created", created, self.tail)

    def task_workers(self, connector: str) -> set[str]:
        """The addresses of the workers that run its tasks now."""
        status = self._ask(f"/connectors/{connector}/status")
        return {task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING"}

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data=body,
            method="GET" if body is None else "PUT",
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)
