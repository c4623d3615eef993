"""A group as bytes, and back: one byte of format version, then MessagePack without field names.

Format 1 is the first. A change that only appends fields with defaults keeps the version; any other change takes
the next one and leaves the reader of the old one in place, so that every snapshot ever written can be read.

The fields are those of :class:`Group`. Its offsets stay encoded until they are asked for, see :class:`StoredOffsets`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from coordinator_logic.group import Group
from coordinator_logic.offsets import Offsets, StoredOffsets, UnreadableOffsets, offset_count
from coordinator_logic.states import State

FORMAT_VERSION = 1


def _stored_fields() -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(Group):
        default: Any = {"default": field.default, "default_factory": field.default_factory}
        yield field.name, msgspec.Raw if field.name == "offsets" else field.type, msgspec.field(**default)


_Stored: Any = msgspec.defstruct("_Stored", _stored_fields(), array_like=True)
_OFFSETS, _OFFSET_COUNT = map(Group.__struct_fields__.index, ("offsets", "stored_offset_count"))

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, Any] = {1: msgspec.msgpack.Decoder(_Stored)}


class UnreadableSnapshot(ValueError):
    """Bytes that are no snapshot this release can read."""


def encode(group: Group) -> bytes:
    """The group as bytes, in the current format."""
    fields: list[Any] = list(msgspec.structs.astuple(group))
    offsets = group.offsets
    if isinstance(offsets, StoredOffsets):
        fields[_OFFSETS] = offsets.for_snapshot
    fields[_OFFSET_COUNT] = offset_count(offsets)
    return bytes((FORMAT_VERSION,)) + _encoder.encode(fields)


def decode(snapshot: bytes) -> Group:
    """The group that the bytes hold; raises :class:`UnreadableSnapshot`.

    Its offsets are looked at when they are asked for, and may raise :class:`UnreadableOffsets` then.
    """
    if not snapshot:
        raise UnreadableSnapshot("the snapshot is empty")
    decoder = _decoders.get(snapshot[0])
    if decoder is None:
        known = ", ".join(map(str, _decoders))
        raise UnreadableSnapshot(f"the snapshot has format version {snapshot[0]}; readable here: {known}")
    try:
        fields: list[Any] = list(msgspec.structs.astuple(decoder.decode(memoryview(snapshot)[1:])))
        fields[_OFFSETS] = _offsets(fields[_OFFSETS], fields[_OFFSET_COUNT])
        fields[_OFFSET_COUNT] = None
    except (msgspec.DecodeError, UnicodeDecodeError, UnreadableOffsets) as error:
        raise UnreadableSnapshot(f"the snapshot is damaged: {error}") from error
    return Group(*fields)


def _offsets(encoded: msgspec.Raw | Offsets, count: int | None) -> Offsets:
    """Those of a snapshot, which may be older than the field, or the count of them."""
    if not isinstance(encoded, msgspec.Raw):
        return encoded
    stored = StoredOffsets(encoded, count or 0)
    return stored if count else stored.positions


def quarantined(group_id: str) -> Group:
    """What stands in for a group whose snapshot cannot be read: Dead, so every request is told to come later."""
    return Group(group_id, "", state=State.DEAD)
