"""Snapshots: a group as one byte of format version, followed by MessagePack without field names.

The fields are those of :class:`Group`. Its part is tagged with the name of the group's type, and each type says how it
is stored. Offsets are decoded only when used, see :class:`StoredOffsets`, and so may be what a type stores.

Format 8 is the current one. Formats 1 to 7 have an offset as an array of its fields, format 8 has
:mod:`coordinator_logic.committed_offsets.columns`.
:mod:`coordinator_logic.groups.conversions.older_snapshots` reads formats 1 to 4. Every
change takes the next version, also one that only appends a field: a release that does not know the field would drop it
with its next write, so it must refuse the snapshot. It refuses fields that it does not know in its own format, too. The
reader of the old format is kept, so that every snapshot ever written can be read; if the change only appends fields
with defaults, the new reader is also that of the old format.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets, StoredOffsets, offset_count
from coordinator_logic.group import Group
from coordinator_logic.group.part import PARTS, GroupPart, stored_parts
from coordinator_logic.groups.conversions.format_4_snapshots import encode_in_format_4
from coordinator_logic.groups.conversions.older_snapshots import OLDER_FORMATS
from coordinator_logic.stored_parts import StoredItems, UnreadablePart, stored_struct

FORMAT_VERSION = 8
"""The current format."""

_WITH_OFFSETS_AS_MAPS = (5, 6, 7)
"""The older formats that otherwise lack only fields with a default: in 5, an offset has no topic id; in 5 and 6, a
consumer group does not know which topics were matched with a pattern."""

_COLUMNS, _MAPS = dict[str, bytes], dict[str, dict[int, CommittedOffset]]
"""The offsets in the current format, and in the older ones."""

EarlierRelease = Literal["0.1.0"]
"""A release that does not read the current format."""

WRITERS_FOR_RELEASES: Mapping[EarlierRelease, Callable[[Group], bytes]] = {"0.1.0": encode_in_format_4}
"""How a snapshot is written for each of them: the way back to it."""

_OFFSETS, _OFFSET_COUNT, _PART = map(Group.__struct_fields__.index, ("offsets", "stored_offset_count", "part"))
_HEADER = bytes((FORMAT_VERSION,))


class UnreadableSnapshot(ValueError):
    """The bytes are not a snapshot that this release can read."""


def _as_stored(value: Any) -> Any:
    """What is encoded in place of offsets and items that may not be decoded."""
    if type(value) is StoredOffsets:
        return value.for_snapshot()
    if isinstance(value, StoredItems):
        return value.for_snapshot()
    raise NotImplementedError(f"a snapshot cannot hold a {type(value).__name__}")


_encoder = msgspec.msgpack.Encoder(enc_hook=_as_stored)


@cache
def decoder(offsets: Any) -> Any:
    """The decoder of formats from 5 on; ``offsets`` is the type of the offsets.

    It is made when it is first used, since it must know all types of groups.
    """
    return msgspec.msgpack.Decoder(stored_struct(Group, {"offsets": offsets, "part": stored_parts()}))


def encode(group: Group) -> bytes:
    """Encode the group in the current format."""
    offsets = group.offsets
    group.stored_offset_count = offset_count(offsets)
    # Without offsets, both have the same bytes.
    if offsets and type(offsets) is not StoredOffsets:
        group.offsets = StoredOffsets.of(offsets)
    encoded = _encoder.encode(group)
    group.stored_offset_count, group.offsets = None, offsets
    return _HEADER + encoded


def decode(snapshot: bytes) -> Group:
    """Decode a snapshot.

    Raises :class:`UnreadableSnapshot`. What is decoded when it is first used may raise :class:`UnreadablePart` then.
    """
    if not snapshot:
        raise UnreadableSnapshot("the snapshot is empty")
    version, encoded = snapshot[0], memoryview(snapshot)[1:]
    try:
        if version == FORMAT_VERSION:
            stored = decoder(_COLUMNS).decode(encoded)
            encoded_offsets, count = stored.offsets, stored.stored_offset_count or 0
            return _group(stored, StoredOffsets(encoded_offsets, count) if encoded_offsets else {})
        if version in _WITH_OFFSETS_AS_MAPS:
            stored = decoder(_MAPS).decode(encoded)
            return _group(stored, stored.offsets)
        if version in OLDER_FORMATS:
            return OLDER_FORMATS[version](encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnreadablePart) as error:
        raise UnreadableSnapshot(f"the snapshot is damaged: {error}") from error
    known = ", ".join(map(str, [*OLDER_FORMATS, *_WITH_OFFSETS_AS_MAPS, FORMAT_VERSION]))
    raise UnreadableSnapshot(f"the snapshot has format version {version}; readable here: {known}")


def _group(stored: Any, offsets: Offsets) -> Group:
    fields: list[Any] = list(msgspec.structs.astuple(stored))
    fields[_OFFSETS], fields[_OFFSET_COUNT] = offsets, None
    part = fields[_PART]
    if not isinstance(part, GroupPart):
        fields[_PART] = PARTS[part.__struct_config__.tag].restored(part)
    return Group(*fields)
