"""Brokers' addresses in responses become the gateway's advertised addresses."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i32, i32Timedelta

from streaming.gateway.proxy.addresses import (
    FIRST_PRODUCE_VERSION_WITH_ADDRESSES,
    Advertise,
    coordinator_node,
    rewrite_addresses,
    rewrite_coordinators,
    rewrite_leaders,
)
from streaming.gateway.proxy.api_versions import MAX_VERSIONS
from streaming.gateway.wire.api_keys import DESCRIBE_CLUSTER, FIND_COORDINATOR, METADATA, PRODUCE, api_name
from streaming.gateway.wire.brokers import Address, Broker, bootstrap_addresses
from streaming.gateway.wire.codec import KNOWN_VERSIONS, decode_response, encode_response
from streaming.gateway.wire.frames import LENGTH_SIZE
from streaming.gateway.wire.steps import run_steps
from tests.gateway.support.entities import filled_entity
from tests.gateway.wire.tagged_fields import with_unknown_tags

NOT_ADVERTISED = Broker(3, Address("gone.internal", 9093))
ADVERTISED = {
    Broker(1, Address("a.internal", 9091)): Address("gateway", 19091),
    Broker(2, Address("b.internal", 9092)): Address("gateway", 19092),
}
VERSIONS = [
    (key, version)
    for key in (METADATA, DESCRIBE_CLUSTER, FIND_COORDINATOR)
    for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
]
CORRELATION_ID = -77


def response_with_brokers(key: int, version: int) -> Any:
    """A response with three brokers, or with one where the version has a single coordinator."""
    module: Any = load_entity_module(module_name(key), version, EntityType.response)
    whole: Any = filled_entity(getattr(module, f"{api_name(key)}Response"))
    if key == FIND_COORDINATOR:
        if not hasattr(whole, "coordinators"):
            return with_broker(replace(whole, error_code=ErrorCode.none), "node_id", next(iter(ADVERTISED)))
        template = replace(whole.coordinators[0], error_code=ErrorCode.none)
        return replace(
            whole,
            coordinators=tuple(with_broker(template, "node_id", broker) for broker in (*ADVERTISED, NOT_ADVERTISED)),
        )
    node_id = "node_id" if key == METADATA else "broker_id"
    brokers = tuple(with_broker(whole.brokers[0], node_id, broker) for broker in (*ADVERTISED, NOT_ADVERTISED))
    return replace(whole, brokers=brokers)


def module_name(key: int) -> str:
    return {METADATA: "metadata", DESCRIBE_CLUSTER: "describe_cluster", FIND_COORDINATOR: "find_coordinator"}[key]


def with_broker(entity: Any, node_id: str, broker: Broker) -> Any:
    return replace(
        entity,
        **{node_id: type(getattr(entity, node_id))(broker.node_id)},
        host=broker.address.host,
        port=i32(broker.address.port),
    )


def rewritten_frame(frame: bytes, key: int, version: int, advertise: Advertise) -> bytes:
    """The frame for the client, given the broker's."""
    if key == FIND_COORDINATOR:
        return run_steps(rewrite_coordinators(frame, version, advertise))
    return rewrite_addresses(frame, key, version, advertise)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_rewritten_response_has_advertised_addresses_and_is_otherwise_equal(key: int, version: int) -> None:
    original = response_with_brokers(key, version)
    frame = rewritten_frame(encode_response(original, CORRELATION_ID), key, version, ADVERTISED.get)
    assert b"internal" not in frame
    assert int.from_bytes(frame[:LENGTH_SIZE], "big") == len(frame) - LENGTH_SIZE
    assert int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True) == CORRELATION_ID
    rewritten: Any = decode_response(frame, key, version)
    if key == FIND_COORDINATOR:
        found = getattr(rewritten, "coordinators", [rewritten])
    else:
        found = rewritten.brokers
        assert replace(rewritten, brokers=original.brokers) == original
        assert len(found) == len(ADVERTISED)
    for entry, (broker, address) in zip(found, ADVERTISED.items(), strict=False):
        assert getattr(entry, "broker_id", None) or entry.node_id == broker.node_id
        assert (entry.host, entry.port) == address


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_brokers_unknown_tagged_fields_do_not_keep_a_response_from_being_rewritten(key: int, version: int) -> None:
    original = response_with_brokers(key, version)
    plain = encode_response(original, CORRELATION_ID)
    frame = rewritten_frame(with_unknown_tags(plain, type(original)), key, version, ADVERTISED.get)
    expected = rewritten_frame(plain, key, version, ADVERTISED.get)
    assert decode_response(frame, key, version) == decode_response(expected, key, version)


def rewritten_leaders(original: Any) -> tuple[bytes, bytes]:
    """A response to Produce as the broker has sent it, and as the client gets it."""
    frame = encode_response(original, CORRELATION_ID)
    rewritten = rewrite_leaders(frame, original.__version__, ADVERTISED.get)
    return frame, rewritten if isinstance(rewritten, bytes) else run_steps(rewritten)


@pytest.mark.parametrize("version", range(FIRST_PRODUCE_VERSION_WITH_ADDRESSES, MAX_VERSIONS[PRODUCE] + 1))
@pytest.mark.parametrize("rack", [None, "", "rack"])
@pytest.mark.parametrize("port", [1, 256, 9_092, 65_280])
def test_the_new_leaders_in_a_response_to_produce_have_advertised_addresses(
    version: int, rack: str | None, port: int
) -> None:
    module: Any = load_entity_module("produce", version, EntityType.response)
    response: Any = replace(filled_entity(module.ProduceResponse), throttle_time=i32Timedelta.parse(timedelta(0)))
    template = replace(response.node_endpoints[0], rack=rack)
    known = next(iter(ADVERTISED))
    unknown = Broker(2, Address("gone.internal", port))
    endpoints = tuple(with_broker(template, "node_id", broker) for broker in (known, unknown))
    original = replace(response, node_endpoints=endpoints)
    _, frame = rewritten_leaders(original)
    rewritten: Any = decode_response(frame, PRODUCE, version)
    assert [(entry.host, entry.port) for entry in rewritten.node_endpoints] == [ADVERTISED[known]]
    assert replace(rewritten, node_endpoints=endpoints) == original


@pytest.mark.parametrize("version", range(3, MAX_VERSIONS[PRODUCE] + 1))
@pytest.mark.parametrize("throttled_ms", [0, 7])
def test_a_response_to_produce_that_names_no_leader_is_unchanged(version: int, throttled_ms: int) -> None:
    module: Any = load_entity_module("produce", version, EntityType.response)
    original: Any = replace(
        filled_entity(module.ProduceResponse), throttle_time=i32Timedelta.parse(timedelta(milliseconds=throttled_ms))
    )
    if version >= FIRST_PRODUCE_VERSION_WITH_ADDRESSES:
        original = replace(original, node_endpoints=())
    of_broker, frame = rewritten_leaders(original)
    assert frame == of_broker


@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[FIND_COORDINATOR][1] + 1))
def test_a_coordinator_without_an_advertised_address_is_not_available(version: int) -> None:
    frame = encode_response(response_with_brokers(FIND_COORDINATOR, version), CORRELATION_ID)
    rewritten: Any = decode_response(
        rewritten_frame(frame, FIND_COORDINATOR, version, lambda _broker: None), FIND_COORDINATOR, version
    )
    for found in getattr(rewritten, "coordinators", [rewritten]):
        assert found.error_code is ErrorCode.coordinator_not_available
        assert (found.node_id, found.host, found.port) == (-1, "", -1)


@pytest.mark.parametrize("version", range(KNOWN_VERSIONS[METADATA][0], KNOWN_VERSIONS[METADATA][1] + 1))
def test_metadata_that_names_no_broker_names_those_seen_last(version: int) -> None:
    original = replace(response_with_brokers(METADATA, version), brokers=())
    frame = rewrite_addresses(
        encode_response(original, CORRELATION_ID), METADATA, version, ADVERTISED.get, [*ADVERTISED]
    )
    rewritten: Any = decode_response(frame, METADATA, version)
    named = [(entry.node_id, entry.host, entry.port) for entry in rewritten.brokers]
    assert named == [(broker.node_id, *address) for broker, address in ADVERTISED.items()]
    assert replace(rewritten, brokers=()) == original


def test_all_gateways_agree_on_a_groups_coordinator() -> None:
    groups = [f"group-{number}" for number in range(1000)]
    chosen = [coordinator_node(group, (1, 2, 3)) for group in groups]
    assert chosen == [coordinator_node(group, (3, 1, 2)) for group in groups]
    assert all(count > 250 for count in Counter(chosen).values())


def test_only_the_groups_of_a_removed_broker_get_another_coordinator() -> None:
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
def test_bootstrap_servers_are_parsed_like_librdkafka_parses_them(
    servers: str, addresses: list[tuple[str, int]]
) -> None:
    assert bootstrap_addresses(servers) == addresses
