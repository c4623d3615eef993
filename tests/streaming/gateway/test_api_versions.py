from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.static.protocol import Entity

from streaming.broker import EmbeddedBroker
from streaming.gateway.api_versions import API_VERSIONS, GROUP_APIS, NEWER_GROUP_APIS
from streaming.gateway.codec import KNOWN_VERSIONS
from streaming.gateway.request import ClientRequest, ServedApi
from tests.streaming.gateway.conftest import NewGateway
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.requests import api_versions
from tests.streaming.gateway.wire_client import WireClient

HEARTBEAT, OFFSET_FETCH, END_TXN = 12, 9, 26
REAL_TO_SHOWN = {"PRODUCE": (0, 9), "FETCH": (1, 15), "END_TXN": (END_TXN, 4), "DESCRIBE_QUORUM": (55, 1)}
NOT_SHOWN = {"transaction.version", "group.version", "share.version", "streams.version"}


def ask(port: int, version: int) -> Any:
    request: Any = load_request_schema(API_VERSIONS, version)
    with WireClient(port) as client:
        return client.ask(request() if version < 3 else api_versions() if version == 3 else four())


def four() -> Any:
    request: Any = load_request_schema(API_VERSIONS, 4)
    return request(client_software_name="test", client_software_version="1.0")


def ranges(answer: Any) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[API_VERSIONS][1] + 1))
def test_the_brokers_own_ranges_are_told_less_what_would_go_past_the_gateway(
    gateway: RunningGateway, broker: EmbeddedBroker, version: int
) -> None:
    real = ask(int(broker.bootstrap_servers.rpartition(":")[2]), version)
    shown = ask(gateway.port, version)
    of_broker, of_gateway = ranges(real), ranges(shown)
    assert set(of_gateway) == set(of_broker) - NEWER_GROUP_APIS - GROUP_APIS
    changed = {key: of_gateway[key] for key in of_gateway if of_gateway[key] != of_broker[key]}
    assert {key: highest for key, (_, highest) in changed.items() if highest != of_broker[key][1]} == dict(
        REAL_TO_SHOWN.values()
    )
    assert {key for key, (lowest, _) in changed.items() if lowest != of_broker[key][0]} <= {17}
    if version >= 3:
        for kind in ("supported_features", "finalized_features"):
            names = {feature.name for feature in getattr(real, kind)}
            assert "metadata.version" in names
            assert {feature.name for feature in getattr(shown, kind)} == names - NOT_SHOWN
        assert "transaction.version" in names


def test_an_api_that_the_gateway_serves_has_the_versions_of_its_handler(new_gateway: NewGateway) -> None:
    async def never(_request: ClientRequest) -> Entity:
        raise NotImplementedError

    served = {
        HEARTBEAT: ServedApi("Heartbeat", HEARTBEAT, 2, 3, never),
        # The broker has no version 0 of it.
        OFFSET_FETCH: ServedApi("OffsetFetch", OFFSET_FETCH, 0, 9, never),
        END_TXN: ServedApi("EndTxn", END_TXN, 0, 3, never),
    }
    shown = ranges(ask(new_gateway(served).port, 3))
    assert {key: shown[key] for key in served} == {HEARTBEAT: (2, 3), OFFSET_FETCH: (1, 9), END_TXN: (0, 3)}


def test_a_version_that_nobody_knows_is_answered_in_version_0(gateway: RunningGateway) -> None:
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


def test_a_client_has_to_say_what_software_it_is(gateway: RunningGateway) -> None:
    with WireClient(gateway.port) as client:
        answer = client.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1"))
        assert answer.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("api_key", "version", "reason"),
    [(68, 0, "unknown-api"), (999, 0, "unknown-api"), (0, 10, "unsupported-version"), (3, 99, "unsupported-version")],
)
def test_what_is_not_offered_is_not_passed_on(gateway: RunningGateway, api_key: int, version: int, reason: str) -> None:
    before = gateway.metric("refused_frames_total", reason=reason)
    content = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
    with WireClient(gateway.port) as client:
        client.send_bytes(len(content).to_bytes(4, "big") + content)
        assert client.is_closed_by_peer()
    assert gateway.metric("refused_frames_total", reason=reason) == before + 1
