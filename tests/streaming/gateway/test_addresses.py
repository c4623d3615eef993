from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i32

from streaming.gateway.addresses import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    Address,
    Broker,
    bootstrap_addresses,
    coordinator_node,
    rewrite_addresses,
)
from streaming.gateway.codec import KNOWN_VERSIONS, api_name, decode_response, encode_response
from streaming.gateway.frames import LENGTH_SIZE
from tests.streaming.gateway.entities import filled

ENDED = Broker(3, Address("gone.internal", 9093))
SHOWN = {
    Broker(1, Address("a.internal", 9091)): Address("gateway", 19091),
    Broker(2, Address("b.internal", 9092)): Address("gateway", 19092),
}
VERSIONS = [
    (key, version)
    for key in (METADATA, DESCRIBE_CLUSTER, FIND_COORDINATOR)
    for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
]
CORRELATION_ID = -77


def answer(key: int, version: int) -> Any:
    """An answer that names three brokers, wherever this API and version do so."""
    module: Any = load_entity_module(api_name_of_module(key), version, EntityType.response)
    whole: Any = filled(getattr(module, f"{api_name(key)}Response"))
    if key == FIND_COORDINATOR:
        if not hasattr(whole, "coordinators"):
            return named(replace(whole, error_code=ErrorCode.none), "node_id", next(iter(SHOWN)))
        template = replace(whole.coordinators[0], error_code=ErrorCode.none)
        return replace(whole, coordinators=tuple(named(template, "node_id", broker) for broker in (*SHOWN, ENDED)))
    node_id = "node_id" if key == METADATA else "broker_id"
    brokers = tuple(named(whole.brokers[0], node_id, broker) for broker in (*SHOWN, ENDED))
    return replace(whole, brokers=brokers)


def api_name_of_module(key: int) -> str:
    return {METADATA: "metadata", DESCRIBE_CLUSTER: "describe_cluster", FIND_COORDINATOR: "find_coordinator"}[key]


def named(entity: Any, node_id: str, broker: Broker) -> Any:
    return replace(
        entity,
        **{node_id: type(getattr(entity, node_id))(broker.node_id)},
        host=broker.address.host,
        port=i32(broker.address.port),
    )


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_no_broker_is_told_but_at_the_gateways_address(key: int, version: int) -> None:
    original = answer(key, version)
    frame = rewrite_addresses(encode_response(original, CORRELATION_ID), key, version, SHOWN.get)
    assert b"internal" not in frame
    assert int.from_bytes(frame[:LENGTH_SIZE], "big") == len(frame) - LENGTH_SIZE
    assert int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True) == CORRELATION_ID
    rewritten: Any = decode_response(frame, key, version)
    if key == FIND_COORDINATOR:
        found = getattr(rewritten, "coordinators", [rewritten])
    else:
        found = rewritten.brokers
        assert replace(rewritten, brokers=original.brokers) == original
        assert len(found) == len(SHOWN)
    for entry, (broker, address) in zip(found, SHOWN.items(), strict=False):
        assert getattr(entry, "broker_id", None) or entry.node_id == broker.node_id
        assert (entry.host, entry.port) == address


@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[FIND_COORDINATOR][1] + 1))
def test_a_coordinator_that_cannot_be_shown_is_not_available(version: int) -> None:
    frame = encode_response(answer(FIND_COORDINATOR, version), CORRELATION_ID)
    rewritten: Any = decode_response(
        rewrite_addresses(frame, FIND_COORDINATOR, version, lambda _broker: None), FIND_COORDINATOR, version
    )
    for found in getattr(rewritten, "coordinators", [rewritten]):
        assert found.error_code is ErrorCode.coordinator_not_available
        assert (found.node_id, found.host, found.port) == (-1, "", -1)


def test_all_gateways_agree_on_a_groups_coordinator() -> None:
    groups = [f"group-{number}" for number in range(1000)]
    chosen = [coordinator_node(group, (1, 2, 3)) for group in groups]
    assert chosen == [coordinator_node(group, (3, 1, 2)) for group in groups]
    assert all(count > 250 for count in Counter(chosen).values())


def test_only_the_groups_of_a_broker_that_goes_get_another_coordinator() -> None:
    groups = [f"group-{number}" for number in range(1000)]
    before = {group: coordinator_node(group, (1, 2, 3)) for group in groups}
    after = {group: coordinator_node(group, (1, 3)) for group in groups}
    assert {before[group] for group in groups if before[group] != after[group]} == {2}


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("a:1", [("a", 1)]),
        ("a:1, PLAINTEXT://b:2,c", [("a", 1), ("b", 2), ("c", 9092)]),
        ("[::1]:5,[::2]", [("::1", 5), ("::2", 9092)]),
    ],
)
def test_bootstrap_servers_are_read_as_librdkafka_reads_them(servers: str, addresses: list[tuple[str, int]]) -> None:
    assert bootstrap_addresses(servers) == addresses
