"""Answers of brokers without the brokers' addresses: every broker is shown where the gateway stands for it."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer, readers, writers
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from streaming.gateway.codec import decode_response, encode_response
from streaming.gateway.frames import LENGTH_SIZE

__all__ = ["Address", "Broker", "Show", "bootstrap_addresses", "coordinator_node", "rewrite_addresses"]

METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER = 3, 10, 60
THROTTLED_METADATA_SINCE = 3
NOWHERE = -1
DEFAULT_PORT = "9092"


class Address(NamedTuple):
    """A host's name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Broker(NamedTuple):
    """A broker of the real cluster, at the address that the cluster tells."""

    node_id: int
    address: Address


def bootstrap_addresses(bootstrap_servers: str) -> list[Address]:
    """The addresses in librdkafka's ``bootstrap.servers``: ``[protocol://]host[:port]``, separated by commas."""
    addresses = []
    for server in bootstrap_servers.split(","):
        host, colon, port = server.rpartition("://")[2].strip().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = f"{host}{colon}{port}", DEFAULT_PORT
        addresses.append(Address(host.strip("[]"), int(port)))
    return addresses


Show = Callable[[Broker], Address | None]
"""Where the gateway stands for a broker; None for one that cannot be shown, which is left out of the answer."""


def coordinator_node(group_id: str, node_ids: Sequence[int]) -> int:
    """The broker that is shown as the coordinator of a group; all gateways of a cluster agree.

    The node with the highest hash of its id and the group's, so that only the groups of a broker that comes or goes
    change theirs. ``ValueError`` without any node.
    """

    def weight(node_id: int) -> bytes:
        return blake2b(f"{node_id}:{group_id}".encode(), digest_size=8).digest()

    return max(node_ids, key=lambda node_id: (weight(node_id), node_id))


def rewrite_addresses(frame: bytes, api_key: int, version: int, show: Show) -> bytes:
    """A response to Metadata, DescribeCluster or FindCoordinator with the gateway's addresses, lengths included.

    Raises one of :data:`streaming.gateway.codec.MALFORMED`.
    """
    if api_key == METADATA:
        return _rewrite_metadata(frame, version, show)
    answer: Any = decode_response(frame, api_key, version)
    if api_key == DESCRIBE_CLUSTER:
        answer = replace(answer, brokers=_shown(answer.brokers, "broker_id", show))
    elif hasattr(answer, "coordinators"):
        answer = replace(answer, coordinators=tuple(_coordinator(found, show) for found in answer.coordinators))
    else:
        answer = _coordinator(answer, show)
    correlation_id = int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True)
    return encode_response(answer, correlation_id)


def _rewrite_metadata(frame: bytes, version: int, show: Show) -> bytes:
    """The brokers stand at the front; what follows can be megabytes of topics, and is left as it is."""
    module: Any = load_entity_module("metadata", version, EntityType.response)
    response_type, broker_type = module.MetadataResponse, module.MetadataResponseBroker
    begin = LENGTH_SIZE + entity_reader(response_type.__header_schema__)(frame, LENGTH_SIZE)[1]
    if version >= THROTTLED_METADATA_SINCE:
        begin += readers.read_int32(frame, begin)[1]
    is_flexible = response_type.__flexible__
    read = (readers.compact_array_reader if is_flexible else readers.legacy_array_reader)(entity_reader(broker_type))
    write = (writers.compact_array_writer if is_flexible else writers.legacy_array_writer)(entity_writer(broker_type))
    brokers, size = read(frame, begin)
    written = io.BytesIO()
    write(written, _shown(brokers or (), "node_id", show))
    content = b"".join((frame[LENGTH_SIZE:begin], written.getvalue(), frame[begin + size :]))
    return len(content).to_bytes(LENGTH_SIZE, "big") + content


def _shown(brokers: Sequence[Entity], node_id_field: str, show: Show) -> tuple[Entity, ...]:
    shown = []
    for broker in brokers:
        entry: Any = broker
        address = show(Broker(getattr(entry, node_id_field), Address(entry.host, entry.port)))
        if address is not None:
            shown.append(replace(entry, host=address.host, port=address.port))
    return tuple(shown)


def _coordinator(found: Any, show: Show) -> Any:
    """An answer with an error names nobody."""
    if found.node_id == NOWHERE:
        return found
    address = show(Broker(found.node_id, Address(found.host, found.port)))
    if address is None:
        nowhere = {"node_id": NOWHERE, "host": "", "port": NOWHERE}
        return replace(found, error_code=ErrorCode.coordinator_not_available, **nowhere)
    return replace(found, host=address.host, port=address.port)
