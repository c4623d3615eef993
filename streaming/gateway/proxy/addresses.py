"""Replaces brokers' addresses in responses with the gateway's advertised addresses for them."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.constants import EntityType
from kio.static.primitive import i32
from kio.static.protocol import Entity

from streaming.gateway.wire.api_keys import FIND_COORDINATOR, METADATA, PRODUCE
from streaming.gateway.wire.brokers import NO_BROKER, Address, Broker
from streaming.gateway.wire.codec import (
    decode_response,
    decode_response_in_steps,
    encode_response,
    encode_response_in_steps,
)
from streaming.gateway.wire.frames import LENGTH_SIZE, RESPONSE_HEAD
from streaming.gateway.wire.layout import layout_of
from streaming.gateway.wire.reader import FrameReader
from streaming.gateway.wire.steps import Steps, run_steps
from streaming.gateway.wire.writer import FrameWriter

FIRST_METADATA_VERSION_WITH_THROTTLE_TIME = 3
THROTTLE_TIME_BYTES = 4
COORDINATORS_PER_STEP = 32

FIRST_PRODUCE_VERSION_WITH_ADDRESSES = 10
"""The first version of Produce in which an error can carry the new leader's own address (KIP-951)."""

END_WITHOUT_ADDRESSES = bytes(5)
"""The end of a response to Produce that was not throttled and has no tagged field. One with addresses ends with a port
and a rack, which are not all zeros."""


Advertise = Callable[[Broker], Address | None]
"""Returns the gateway's advertised address for a broker; None leaves the broker out of the response."""


def coordinator_node(group_id: str, node_ids: Sequence[int]) -> int:
    """Choose the broker whose listener is advertised as a group's coordinator; all gateways of a cluster agree.

    It is the node with the highest hash of node id and group id (rendezvous hashing): when a broker joins or leaves
    the cluster, only the groups of that broker get another coordinator. ``ValueError`` without any node.
    """

    def weight(node_id: int) -> bytes:
        return blake2b(f"{node_id}:{group_id}".encode(), digest_size=8).digest()

    return max(node_ids, key=lambda node_id: (weight(node_id), node_id))


def rewrite_addresses(
    frame: bytes, api_key: int, version: int, advertise: Advertise, last_named: Sequence[Broker] = ()
) -> bytes:
    """Rewrite a response frame of Metadata or DescribeCluster to advertised addresses.

    A Metadata response that names no broker, as a broker sends while it starts or ends as the only one, names those
    of ``last_named`` instead: a client of librdkafka 2.13 to 2.16 that is told of no broker never asks again
    (confluentinc/librdkafka#5301).

    Raises one of :data:`streaming.gateway.wire.codec.MALFORMED`.
    """
    if api_key == METADATA:
        return _rewrite_metadata(frame, version, advertise, last_named)
    response: Any = decode_response(frame, api_key, version)
    response = replace(response, brokers=_advertised(response.brokers or (), "broker_id", advertise))
    return encode_response(response, _correlation_id(frame))


def rewrite_leaders(frame: bytes, version: int, advertise: Advertise) -> bytes | Steps[bytes]:
    """Rewrite a response frame of Produce to advertised addresses of the leaders that it names, in steps.

    Most name none, and are returned at once. Raises one of :data:`streaming.gateway.wire.codec.MALFORMED`.
    """
    if version < FIRST_PRODUCE_VERSION_WITH_ADDRESSES or frame.endswith(END_WITHOUT_ADDRESSES):
        return frame
    return _rewrite_leaders(frame, version, advertise)


def _rewrite_leaders(frame: bytes, version: int, advertise: Advertise) -> Steps[bytes]:
    response: Any = yield from decode_response_in_steps(frame, PRODUCE, version)
    response = replace(response, node_endpoints=_advertised(response.node_endpoints, "node_id", advertise))
    return (yield from encode_response_in_steps(response, _correlation_id(frame)))


def rewrite_coordinators(frame: bytes, version: int, advertise: Advertise) -> Steps[bytes]:
    """Rewrite a response frame of FindCoordinator to advertised addresses, in steps: it can have many coordinators.

    Raises one of :data:`streaming.gateway.wire.codec.MALFORMED`.
    """
    response: Any = yield from decode_response_in_steps(frame, FIND_COORDINATOR, version)
    if hasattr(response, "coordinators"):
        coordinators = []
        for number, found in enumerate(response.coordinators or ()):
            coordinators.append(_advertised_coordinator(found, advertise))
            if number % COORDINATORS_PER_STEP == COORDINATORS_PER_STEP - 1:
                yield
        response = replace(response, coordinators=tuple(coordinators))
    else:
        response = _advertised_coordinator(response, advertise)
    return (yield from encode_response_in_steps(response, _correlation_id(frame)))


def _correlation_id(frame: bytes) -> int:
    return int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True)


def _rewrite_metadata(frame: bytes, version: int, advertise: Advertise, last_named: Sequence[Broker]) -> bytes:
    """Rewrite the brokers only, which come first; the topics behind them can be megabytes and are copied undecoded."""
    module: Any = load_entity_module("metadata", version, EntityType.response)
    response_type, broker_type = module.MetadataResponse, module.MetadataResponseBroker
    reader = FrameReader(frame, RESPONSE_HEAD.size, max_entries=len(frame))
    run_steps(reader.end_of_response_header(response_type))
    if version >= FIRST_METADATA_VERSION_WITH_THROTTLE_TIME:
        reader.at += THROTTLE_TIME_BYTES
    begin = reader.at
    (field,) = (each for each in layout_of(response_type, response_type).fields if each.name == "brokers")
    brokers = run_steps(reader.field(field))
    rewritten = io.BytesIO()
    advertised = _advertised(brokers or _entries(broker_type, last_named), "node_id", advertise)
    run_steps(FrameWriter(rewritten).field(field, advertised))
    content = b"".join((frame[LENGTH_SIZE:begin], rewritten.getvalue(), frame[reader.at :]))
    return len(content).to_bytes(LENGTH_SIZE, "big") + content


def _entries(broker_type: Any, brokers: Sequence[Broker]) -> tuple[Entity, ...]:
    """The brokers in a Metadata response; their racks are not known."""
    without_rack = {"rack": None} if "rack" in broker_type.__dataclass_fields__ else {}
    return tuple(
        broker_type(
            node_id=BrokerId(broker.node_id), host=broker.address.host, port=i32(broker.address.port), **without_rack
        )
        for broker in brokers
    )


def _advertised(brokers: Sequence[Entity], node_id_field: str, advertise: Advertise) -> tuple[Entity, ...]:
    advertised = []
    for broker in brokers:
        entry: Any = broker
        address = advertise(Broker(getattr(entry, node_id_field), Address(entry.host, entry.port)))
        if address is not None:
            advertised.append(replace(entry, host=address.host, port=address.port))
    return tuple(advertised)


def _advertised_coordinator(found: Any, advertise: Advertise) -> Any:
    """A response with an error names no broker and is returned unmodified."""
    if found.node_id == NO_BROKER:
        return found
    address = advertise(Broker(found.node_id, Address(found.host, found.port)))
    if address is None:
        no_broker = {"node_id": NO_BROKER, "host": "", "port": NO_BROKER}
        return replace(found, error_code=ErrorCode.coordinator_not_available, **no_broker)
    return replace(found, host=address.host, port=address.port)
