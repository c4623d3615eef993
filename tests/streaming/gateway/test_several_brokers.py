"""A cluster of two brokers, of which one comes later, goes and comes back."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.primitive import i8

from streaming.broker import EmbeddedBroker
from tests.streaming.gateway.clients import LIMIT_SECONDS, consume_all, produce_all
from tests.streaming.gateway.conftest import NewGateway
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.requests import metadata
from tests.streaming.gateway.sasl_broker import free_ports
from tests.streaming.gateway.test_proxy import eventually
from tests.streaming.gateway.wire_client import WireClient


class Pair:
    """Broker 1, which is the controller too, and broker 2, which is not started yet."""

    def __init__(self, folder: Path) -> None:
        first, second, controller = free_ports(3)
        quorum = {"controller.quorum.voters": f"1@127.0.0.1:{controller}"}
        listeners = f"PLAINTEXT://127.0.0.1:{first},CONTROLLER://127.0.0.1:{controller}"
        self.first = EmbeddedBroker(data_dir=folder / "1", port=first, properties={"listeners": listeners, **quorum})
        alone = f"PLAINTEXT://127.0.0.1:{second}"
        joining = {"process.roles": "broker", "node.id": "2", "listeners": alone, **quorum}
        self.second = EmbeddedBroker(data_dir=folder / "2", port=second, properties=joining)
        self._folder = folder

    def start_second(self) -> None:
        """A broker's data folder belongs to a cluster before its first start."""
        log = self._folder / "2" / "log"
        log.mkdir(parents=True, exist_ok=True)
        directory_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        lines = ("version=1", "node.id=2", f"cluster.id={self.first.cluster_id}", f"directory.id={directory_id}")
        if not (log / "meta.properties").exists():
            (log / "meta.properties").write_text("\n".join(lines) + "\n")
        self.second.start()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    brokers = Pair(tmp_path)
    brokers.first.start()
    try:
        yield brokers
    finally:
        # In order, it would wait for the controller, which may be gone.
        brokers.second.kill()
        brokers.first.stop()


def ports(running: RunningGateway, asked: int) -> dict[int, int]:
    """Where the brokers are shown, as the listener at this port tells."""
    with WireClient(asked) as client:
        return {broker.node_id: broker.port for broker in client.ask(metadata()).brokers}


def test_brokers_that_come_and_go_are_shown_each_at_its_own_port(pair: Pair, new_gateway: NewGateway) -> None:
    running = new_gateway(None, {"metadata-refresh-ms": 200}, bootstrap_servers=pair.first.bootstrap_servers)
    assert ports(running, running.port) == {1: running.port}
    pair.start_second()
    eventually(lambda: set(running.server.addresses) == {1, 2}, "the second broker is found")
    shown = {node_id: address.port for node_id, address in running.server.addresses.items()}
    assert shown[1] == running.port != shown[2]
    for port in shown.values():
        eventually(lambda port=port: ports(running, port) == shown, "both brokers are shown")  # type: ignore[misc]

    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    for node_id in (1, 2):
        topic = f"on-{node_id}"
        admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[node_id]])])[topic].result(
            LIMIT_SECONDS
        )
        produce_all(running.bootstrap_servers, topic, [b"value"])
        assert consume_all(running.bootstrap_servers, topic, 1) == [b"value"]
    with WireClient(shown[2]) as client:
        found = client.ask(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=tuple("abcdefghijklmnop")))
    assert {(each.node_id, each.port) for each in found.coordinators} == set(shown.items())

    pair.second.kill()
    eventually(lambda: running.server.cluster.node_ids() == (1,), "the second broker is missed")
    with WireClient(shown[2]) as client:
        client.send(metadata())
        assert client.is_closed_by_peer()
    pair.start_second()
    eventually(lambda: running.server.cluster.node_ids() == (1, 2), "the second broker is found again")
    assert {node_id: address.port for node_id, address in running.server.addresses.items()} == shown

    pair.first.kill()
    with WireClient(running.port) as client:
        brokers = client.ask(metadata()).brokers
    assert shown.items() >= {broker.node_id: broker.port for broker in brokers}.items()
