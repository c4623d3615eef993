"""The services of compose.yaml, with addresses of this machine in place of those in its network."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import HOST, free_ports
from tests.docs.markdown import ROOT

ADDRESS = re.compile(r"(?:kafka|localhost|0\.0\.0\.0)?:(\d{4,5})\b")
BROKER_PORT, GATEWAY_PORT = "9092", "19092"
METRICS_PORTS = ("GROUP_COORDINATOR_METRICS_PORT", "GROUP_COORDINATOR_GATEWAY_METRICS_PORT")


def services() -> dict[str, Any]:
    """The services as they are in the file."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    return loaded


class Compose:
    """The services at free ports of this machine, the same ones for all of them."""

    def __init__(self) -> None:
        self._services = services()
        ports = sorted(set(ADDRESS.findall(str(list(self._services.values())))))
        metrics = [(service, variable) for service in self._services for variable in METRICS_PORTS]
        # One call: then all of them are different.
        free = list(map(str, free_ports(len(ports) + len(metrics))))
        self._ports = dict(zip(ports, free[: len(ports)], strict=True))
        self._metrics_ports = dict(zip(metrics, free[len(ports) :], strict=True))

    def address(self, port: str) -> str:
        """Where this machine has what listens at a port in compose.yaml."""
        return f"{HOST}:{self._ports[port]}"

    def service(self, name: str) -> dict[str, Any]:
        """A service of the image; its metrics have free ports, since all containers are in this machine's network."""
        placed: dict[str, Any] = self._placed(self._services[name])
        placed["environment"] |= {variable: self._metrics_ports[name, variable] for variable in METRICS_PORTS}
        return placed

    @contextmanager
    def broker(self) -> Iterator[EmbeddedBroker]:
        """The tests' broker with the settings of the service ``kafka``, as Kafka's image reads them from variables."""
        settings = self._placed(self._services["kafka"]["environment"])
        properties = {
            key.removeprefix("KAFKA_").lower().replace("_", "."): str(value) for key, value in settings.items()
        }
        with EmbeddedBroker(port=int(self._ports[BROKER_PORT]), properties=properties) as broker:
            yield broker

    def _placed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._placed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._placed(each) for each in value]
        return ADDRESS.sub(lambda found: self.address(found[1]), value) if isinstance(value, str) else value
