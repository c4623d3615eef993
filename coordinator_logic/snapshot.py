"""Snapshots: a group as one byte of format version, followed by MessagePack without field names.

Format 1 is that of classic groups, format 2 that of consumer groups: the fields of format 1, then those that only a
consumer group has. A release that knows format 1 alone can still read the classic groups of this one. A change that
only appends fields with defaults keeps the version. Any other change takes the next version and keeps the reader of the
old one, so that every snapshot ever written can be read.

The fields are those of :class:`Group`. Its offsets are decoded only when used, see :class:`StoredOffsets`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from coordinator_logic.committed_offsets import Offsets, StoredOffsets, UnreadableOffsets, offset_count
from coordinator_logic.group import Group
from coordinator_logic.states import State

CLASSIC_FORMAT, CONSUMER_FORMAT = 1, 2
FORMAT_VERSION = CONSUMER_FORMAT
"""The newest format."""


_STORED_TYPES: dict[str, Any] = {"offsets": msgspec.Raw, "pending_joins": list[str], "pending_syncs": list[str]}
"""The fields that a snapshot stores as another type than the group's: a set of member ids is a list."""


def _stored_fields() -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(Group):
        default: Any = {"default": field.default, "default_factory": field.default_factory}
        yield field.name, _STORED_TYPES.get(field.name, field.type), msgspec.field(**default)


_Stored: Any = msgspec.defstruct("_Stored", _stored_fields(), array_like=True)
_OFFSETS, _OFFSET_COUNT, _PENDING_JOINS, _PENDING_SYNCS = map(
    Group.__struct_fields__.index, ("offsets", "stored_offset_count", "pending_joins", "pending_syncs")
)

_NOBODY: list[str] = []
_CLASSIC_HEADER, _CONSUMER_HEADER = bytes((CLASSIC_FORMAT,)), bytes((CONSUMER_FORMAT,))

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, Any] = dict.fromkeys((CLASSIC_FORMAT, CONSUMER_FORMAT), msgspec.msgpack.Decoder(_Stored))


class UnreadableSnapshot(ValueError):
    """The bytes are not a snapshot that this release can read."""


def encode(group: Group) -> bytes:
    """Encode the group in the current format."""
    fields: list[Any] = list(msgspec.structs.astuple(group))
    offsets = group.offsets
    if isinstance(offsets, StoredOffsets):
        fields[_OFFSETS] = offsets.for_snapshot
    fields[_OFFSET_COUNT] = offset_count(offsets)
    # Most groups have neither. The comparison is cheaper than a call, and this runs for every group of a batch.
    fields[_PENDING_JOINS] = list(group.pending_joins) if group.pending_joins else _NOBODY
    fields[_PENDING_SYNCS] = list(group.pending_syncs) if group.pending_syncs else _NOBODY
    if group.consumer is None:
        fields.pop()  # the last field, which only a consumer group has
        return _CLASSIC_HEADER + _encoder.encode(fields)
    return _CONSUMER_HEADER + _encoder.encode(fields)


def decode(snapshot: bytes) -> Group:
    """Decode a snapshot.

    Raises :class:`UnreadableSnapshot`. The group's offsets are decoded when they are first used, and may raise
    :class:`UnreadableOffsets` then.
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
        fields[_PENDING_JOINS] = dict.fromkeys(fields[_PENDING_JOINS]) if fields[_PENDING_JOINS] else {}
        fields[_PENDING_SYNCS] = dict.fromkeys(fields[_PENDING_SYNCS]) if fields[_PENDING_SYNCS] else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnreadableOffsets) as error:
        raise UnreadableSnapshot(f"the snapshot is damaged: {error}") from error
    return Group(*fields)


def _offsets(encoded: msgspec.Raw | Offsets, count: int | None) -> Offsets:
    """The offsets of a snapshot; a snapshot of an older release may lack them or their count."""
    if not isinstance(encoded, msgspec.Raw):
        return encoded
    stored = StoredOffsets(encoded, count or 0)
    return stored if count else stored.positions


def quarantined(group_id: str) -> Group:
    """A Dead group in place of one whose snapshot cannot be read: it answers everything COORDINATOR_NOT_AVAILABLE."""
    return Group(group_id, "", state=State.DEAD)
