"""A cluster of two brokers: the second one joins later, fails and recovers."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.primitive import i8

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import free_ports
from tests.gateway.conftest import NewGateway
from tests.gateway.support.requests import metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.kafka_io import consume_all, produce_all
from tests.support.waiting import LIMIT_SECONDS, wait_until


class Pair:
    """Broker 1, which is also the controller, and broker 2, which is not started yet."""

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
        """Start broker 2, with a data folder that is formatted for broker 1's cluster."""
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
        # An orderly shutdown would wait for the controller, which may be gone.
        brokers.second.kill()
        brokers.first.stop()


def advertised_ports(port: int) -> dict[int, int]:
    """The advertised ports by node id, in the Metadata response of the listener at a port."""
    with WireClient(port) as client:
        return {broker.node_id: broker.port for broker in client.ask(metadata()).brokers}


def test_each_broker_is_advertised_at_its_own_port_while_brokers_join_and_fail(
    pair: Pair, new_gateway: NewGateway
) -> None:
    running = new_gateway(None, {"metadata-refresh-ms": 200}, bootstrap_servers=pair.first.bootstrap_servers)
    assert advertised_ports(running.port) == {1: running.port}
    pair.start_second()
    wait_until(lambda: set(running.server.addresses) == {1, 2}, "the second broker is found")
    advertised = {node_id: address.port for node_id, address in running.server.addresses.items()}
    assert advertised[1] == running.port != advertised[2]
    for port in advertised.values():
        wait_until(lambda port=port: advertised_ports(port) == advertised, "both brokers are advertised")  # type: ignore[misc]

    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    for node_id in (1, 2):
        topic = f"on-{node_id}"
        admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[node_id]])])[topic].result(
            LIMIT_SECONDS
        )
        produce_all(running.bootstrap_servers, topic, [b"value"])
        assert consume_all(running.bootstrap_servers, topic, 1) == [b"value"]
    with WireClient(advertised[2]) as client:
        found = client.ask(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=tuple("abcdefghijklmnop")))
    assert {(each.node_id, each.port) for each in found.coordinators} == set(advertised.items())

    pair.second.kill()
    wait_until(lambda: running.server.cluster.node_ids() == (1,), "the second broker is removed")
    with WireClient(advertised[2]) as client:
        client.send(metadata())
        assert client.is_closed_by_peer()
    pair.start_second()
    wait_until(lambda: running.server.cluster.node_ids() == (1, 2), "the second broker is found again")
    assert {node_id: address.port for node_id, address in running.server.addresses.items()} == advertised

    pair.first.kill()
    with WireClient(running.port) as client:
        brokers = client.ask(metadata()).brokers
    assert advertised.items() >= {broker.node_id: broker.port for broker in brokers}.items()
