"""Frames of Kafka's wire protocol: what a client sends to the gateway, and what a broker answers.

A request of a group API goes the whole way: decoded, as an event through ``process``, and back as a response frame.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from kio.index import load_request_schema, load_response_schema

from coordinator_logic.apis import APIS
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from streaming.gateway.groups.backend import decode_response as decode_event_response
from streaming.gateway.proxy.addresses import rewrite_addresses, rewrite_coordinators
from streaming.gateway.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from streaming.gateway.wire.brokers import Address, Broker
from streaming.gateway.wire.codec import (
    KNOWN_VERSIONS,
    MALFORMED,
    decode_request,
    encode_request,
    encode_response,
    encode_response_in_steps,
)
from streaming.gateway.wire.frames import ByteBuffer, FrameRefused, parse_acks, parse_request_head, parse_response_head
from streaming.gateway.wire.steps import run_steps
from streaming.job.rows.records import KafkaRecord
from tests.fuzz.targets.conversation import NOW, TOPICS, answered
from tests.gateway.support.entities import filled_entity

MAX_FRAME_BYTES = 1 << 20
GROUP_APIS = {api.key: api for api in APIS.values() if api.key is not None and api.key in KNOWN_VERSIONS}
DECODED = (*GROUP_APIS, API_VERSIONS, FIND_COORDINATOR, SASL_HANDSHAKE, SASL_AUTHENTICATE)
REWRITTEN = (METADATA, DESCRIBE_CLUSTER, FIND_COORDINATOR)
RAW, REQUEST, RESPONSE = range(3)
CORRELATION_ID = 7


def seeds() -> Iterator[bytes]:
    """A request of every version of each decoded API, and a response of each rewritten one, every field filled."""
    for number, key in enumerate(DECODED):
        lowest, highest = KNOWN_VERSIONS[key]
        for version in range(lowest, highest + 1):
            frame = encode_request(filled_entity(load_request_schema(key, version)), CORRELATION_ID, "fuzz")
            yield bytes((RAW,)) + frame
            yield bytes((REQUEST, number, version)) + frame[8:]
    for number, key in enumerate(REWRITTEN):
        lowest, highest = KNOWN_VERSIONS[key]
        for version in range(lowest, highest + 1):
            response = filled_entity(load_response_schema(key, version))
            yield bytes((RESPONSE, number, version)) + encode_response(response, CORRELATION_ID)[4:]


def run(data: bytes) -> None:
    """Read the input as a frame: as it came, or as a request or response of the version that its first bytes choose."""
    if len(data) < 3:
        return
    kind, number, version = data[0] % 3, data[1], data[2]
    if kind == RESPONSE:
        _rewrite(_framed(data[3:]), REWRITTEN[number % len(REWRITTEN)], version)
        return
    frame = data[1:]
    if kind == REQUEST:
        key = DECODED[number % len(DECODED)]
        frame = _framed(key.to_bytes(2, "big") + version.to_bytes(2, "big") + data[3:])
    with suppress(FrameRefused):
        _receive(frame)


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _receive(frame: bytes) -> None:
    received = ByteBuffer()
    received.feed(frame)
    head = parse_request_head(received, MAX_FRAME_BYTES)
    if head is None:
        return
    lowest, highest = KNOWN_VERSIONS.get(head.api_key, (0, -1))
    if not lowest <= head.version <= highest:
        return
    if head.api_key == PRODUCE:
        parse_acks(received, head)
    if head.api_key not in DECODED:
        return
    api = GROUP_APIS.get(head.api_key)
    if api is None or not api.min_version <= head.version <= api.max_version:
        decode_request(frame, head.api_key, head.version)
    else:
        _handle(api, head.version, *decode_request(frame, head.api_key, head.version, api.request_type))


def _handle(api: Any, version: int, client_id: str, body: Any) -> None:
    """Send the request to a new group as the gateway would, and encode the answer as it would."""
    group_id = getattr(body, "group_id", "g")
    event = RequestEnvelope(api.name, version, "fuzz", 0, msgspec.Raw(msgspec.json.encode(body)), client_id)
    outcome = answered([KafkaRecord(NOW, 0, 0, group_id.encode(), msgspec.json.encode(event))])
    for row in outcome.rows:
        if row.topic == TOPICS.responses and row.value is not None:
            envelope = msgspec.json.decode(row.value, type=ResponseEnvelope)
            response = decode_event_response(api, body, version, envelope)
            run_steps(encode_response_in_steps(response, CORRELATION_ID, load_response_schema(api.key, version)))


def _rewrite(frame: bytes, key: int, version: int) -> None:
    received = ByteBuffer()
    received.feed(frame)
    parse_response_head(received)
    with suppress(*MALFORMED):
        if key == FIND_COORDINATOR:
            run_steps(rewrite_coordinators(frame, version, _advertised))
        else:
            rewrite_addresses(frame, key, version, _advertised)


def _advertised(broker: Broker) -> Address | None:
    return Address("gateway", 19092) if broker.node_id % 2 == 0 else None
