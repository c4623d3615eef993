"""The gateway offers the broker's APIs, without those that would bypass it."""

from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.static.protocol import Entity

from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.wire.api_keys import API_VERSIONS, DESCRIBE_QUORUM, END_TXN, FETCH, PRODUCE, SASL_HANDSHAKE
from streaming.gateway.wire.client_request import ClientRequest, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from tests.gateway.conftest import NewGateway
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import api_versions
from tests.gateway.support.wire_client import WireClient

HEARTBEAT, OFFSET_FETCH = 12, 9
CAPPED = {PRODUCE: 12, FETCH: 15, DESCRIBE_QUORUM: 1}
HIDDEN_FEATURES = {"transaction.version", "group.version", "share.version", "streams.version"}
"""Features that a gateway without handlers hides."""


SOFTWARE = {"client_software_name": "test", "client_software_version": "1.0"}


def ask(port: int, version: int) -> Any:
    """The response to ApiVersions."""
    request: Any = load_request_schema(API_VERSIONS, version)
    with WireClient(port) as client:
        return client.ask(request(**(SOFTWARE if version >= 3 else {})))


def ranges(response: Any) -> dict[int, tuple[int, int]]:
    """The lowest and the highest version of each API in a response."""
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[API_VERSIONS][1] + 1))
def test_the_brokers_apis_are_offered_without_those_that_bypass_the_gateway(
    gateway: RunningGateway, broker: EmbeddedBroker, version: int
) -> None:
    real = ask(int(broker.bootstrap_servers.rpartition(":")[2]), version)
    offered = ask(gateway.port, version)
    of_broker, of_gateway = ranges(real), ranges(offered)
    without = {key for key in of_broker if API_POLICIES[key].treatment in (Treatment.REFUSED, Treatment.SERVED)}
    assert set(of_gateway) == set(of_broker) - without
    changed = {key: of_gateway[key] for key in of_gateway if of_gateway[key] != of_broker[key]}
    assert {key: highest for key, (_, highest) in changed.items() if highest != of_broker[key][1]} == CAPPED
    assert {key for key, (lowest, _) in changed.items() if lowest != of_broker[key][0]} <= {SASL_HANDSHAKE}
    if version >= 3:
        for kind in ("supported_features", "finalized_features"):
            names = {feature.name for feature in getattr(real, kind)}
            assert "metadata.version" in names
            assert {feature.name for feature in getattr(offered, kind)} == names - HIDDEN_FEATURES
        assert "transaction.version" in names


def test_a_served_api_has_the_versions_that_broker_and_handler_share(new_gateway: NewGateway) -> None:
    async def never(_request: ClientRequest) -> Entity:
        raise NotImplementedError

    served = {
        HEARTBEAT: ServedApi("Heartbeat", HEARTBEAT, 2, 3, never),
        # The broker has no version 0 of this one.
        OFFSET_FETCH: ServedApi("OffsetFetch", OFFSET_FETCH, 0, 9, never),
        END_TXN: ServedApi("EndTxn", END_TXN, 0, 3, never),
    }
    offered = ranges(ask(new_gateway(served).port, 3))
    assert {key: offered[key] for key in served} == {HEARTBEAT: (2, 3), OFFSET_FETCH: (1, 9), END_TXN: (0, 3)}


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(gateway: RunningGateway) -> None:
    content = b"\x00\x12" + (77).to_bytes(2, "big") + b"\x00\x00\x00\x05" + b"\x00\x01x" + b"\x00whatever"
    with WireClient(gateway.port) as client:
        client.send_bytes(len(content).to_bytes(4, "big") + content)
        frame = client.receive_frame()
        assert frame[4:8] == b"\x00\x00\x00\x05"
        answer, size = entity_reader(ApiVersionsResponseV0)(frame, 8)
        assert 8 + size == len(frame)
        assert answer.error_code is ErrorCode.unsupported_version
        assert ranges(answer) == {API_VERSIONS: (0, 4)}
        assert client.ask(api_versions()).error_code is ErrorCode.none


def test_an_invalid_software_name_is_an_invalid_request(gateway: RunningGateway) -> None:
    with WireClient(gateway.port) as client:
        answer = client.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1"))
        assert answer.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("api_key", "version", "reason"),
    [(68, 0, "unknown-api"), (999, 0, "unknown-api"), (0, 13, "unsupported-version"), (3, 99, "unsupported-version")],
)
def test_a_request_that_is_not_offered_closes_the_connection(
    gateway: RunningGateway, api_key: int, version: int, reason: str
) -> None:
    before = gateway.metric("refused_frames_total", reason=reason)
    content = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
    with WireClient(gateway.port) as client:
        client.send_bytes(len(content).to_bytes(4, "big") + content)
        assert client.is_closed_by_peer()
    assert gateway.metric("refused_frames_total", reason=reason) == before + 1


def test_invented_versions_and_keys_add_no_series_to_the_metrics(new_gateway: NewGateway) -> None:
    running = new_gateway()

    def count() -> int:
        return sum(len(metric.samples) for metric in running.server.metrics.registry.collect())

    def send(api_key: int, version: int) -> None:
        content = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff\x00"
        with WireClient(running.port) as client:
            client.send_bytes(len(content).to_bytes(4, "big") + content)
            if api_key == API_VERSIONS:
                client.receive_frame()
            else:
                assert client.is_closed_by_peer()

    send(API_VERSIONS, 1000)
    before = count()
    for invented in range(200):
        send(API_VERSIONS, 1001 + invented)
        send(500 + invented, invented)
    assert count() == before
