"""Converts between the coordinator's messages and kio's entities, through the bytes that the gateway reads and writes.

One side of the bytes is always kio's, so each conversion also checks the gateway against it.
"""

import io
from typing import Any, TypeVar, cast

from kio.serial import entity_reader, entity_writer
from kio.static.protocol import Entity

from coordinator_logic.messages import Message
from streaming.gateway.wire.layout import layout_of
from streaming.gateway.wire.reader import FrameReader
from streaming.gateway.wire.steps import run_steps
from streaming.gateway.wire.writer import FrameWriter

__all__ = ["from_wire", "read_entity", "read_whole", "to_wire", "written", "written_by_kio"]

MessageT = TypeVar("MessageT", bound=Message)


def to_wire(message: Message, wire_type: type[Any]) -> Any:
    """The entity of one version that kio reads from the message's bytes; they are nothing else."""
    return read_whole(wire_type, written(message, wire_type))


def from_wire(payload: Entity, message_type: type[MessageT]) -> MessageT:
    """The message in the bytes that kio writes for an entity."""
    message: MessageT = read_entity(type(payload), written_by_kio(payload), message_type)
    return message


def written(source: Any, wire_type: Any) -> bytes:
    """What the gateway writes for an object as an entity of that type."""
    buffer, object_type = io.BytesIO(), cast("Any", type(source))
    run_steps(FrameWriter(buffer).entity(layout_of(wire_type, object_type), source))
    return buffer.getvalue()


def written_by_kio(payload: Any) -> bytes:
    """What kio writes for an entity."""
    buffer = io.BytesIO()
    entity_writer(type(payload))(buffer, payload)
    return buffer.getvalue()


def read_whole(wire_type: type[Any], content: bytes) -> Any:
    """What kio reads from bytes that have one entity and nothing else."""
    read, size = entity_reader(wire_type)(content, 0)
    assert size == len(content)
    return read


def read_entity(wire_type: Any, content: bytes, object_type: Any = None) -> Any:
    """What the gateway reads from bytes that have one entity and nothing else."""
    reader = FrameReader(content, 0, max_entries=len(content))
    read = run_steps(reader.entity(layout_of(wire_type, object_type or wire_type)))
    assert reader.at == len(content)
    return read
