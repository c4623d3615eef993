"""Snapshots: a group as one byte of format version, followed by MessagePack without field names.

Format 1 is that of classic groups, format 4 that of consumer groups: the fields of format 1, then those that only a
consumer group has. Formats 2 and 3 are earlier ones of consumer groups. In format 2 members and targets are in place,
not strings of bytes; in both, the partitions of a member are in place. A release that knows format 1 alone can still
read the classic groups of this one. A change that only appends fields with defaults keeps the version. Any other change
takes the next version and keeps the reader of the old one, so that every snapshot ever written can be read.

The fields are those of :class:`Group`. Its offsets are decoded only when used, see :class:`StoredOffsets`, and so is
each member of a consumer group with its target, see :class:`StoredItems`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from coordinator_logic.committed_offsets import Offsets, StoredOffsets, offset_count
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup, TargetPartitions
from coordinator_logic.groups.consumer.members import ConsumerMember, decode_member, encode_member
from coordinator_logic.states import State
from coordinator_logic.stored_parts import ItemCodec, StoredItems, UnreadablePart, encoded_items

CLASSIC_FORMAT, CONSUMER_FORMAT = 1, 4
FORMAT_WITH_MEMBERS_IN_PLACE, FORMAT_WITH_PARTITIONS_IN_PLACE = 2, 3
FORMAT_VERSION = CONSUMER_FORMAT
"""The newest format."""


def _stored(struct: type[msgspec.Struct], types: Mapping[str, Any]) -> Any:
    """The struct as a snapshot stores it: with ``types`` for some of its fields."""
    fields = []
    for field in msgspec.structs.fields(struct):
        default: Any = {"default": field.default, "default_factory": field.default_factory}
        fields.append((field.name, types.get(field.name, field.type), msgspec.field(**default)))
    return msgspec.defstruct(f"_Stored{struct.__name__}", fields, array_like=True)


def _decoder(items: Any) -> Any:
    """The decoder of a format in which a consumer group's members and targets have this type."""
    consumer: Any = _stored(ConsumerGroup, {"members": dict[str, items], "targets": dict[str, items]})
    types = {
        "offsets": msgspec.Raw,
        # A set of member ids is a list.
        "pending_joins": list[str],
        "pending_syncs": list[str],
        "consumer": consumer | None,
    }
    return msgspec.msgpack.Decoder(_stored(Group, types))


_OFFSETS, _OFFSET_COUNT, _PENDING_JOINS, _PENDING_SYNCS, _CONSUMER = map(
    Group.__struct_fields__.index, ("offsets", "stored_offset_count", "pending_joins", "pending_syncs", "consumer")
)
_MEMBERS, _TARGETS = map(ConsumerGroup.__struct_fields__.index, ("members", "targets"))

_NOBODY: list[str] = []
_CLASSIC_HEADER, _CONSUMER_HEADER = bytes((CLASSIC_FORMAT,)), bytes((CONSUMER_FORMAT,))

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, Any] = {
    FORMAT_WITH_MEMBERS_IN_PLACE: _decoder(msgspec.Raw),
    CONSUMER_FORMAT: _decoder(bytes),
}
_decoders[CLASSIC_FORMAT] = _decoders[FORMAT_WITH_PARTITIONS_IN_PLACE] = _decoders[CONSUMER_FORMAT]
_earlier_member_decoder = msgspec.msgpack.Decoder(ConsumerMember)
_MEMBER_CODEC = ItemCodec(encode_member, decode_member)
_TARGET_CODEC = ItemCodec(_encoder.encode, msgspec.msgpack.Decoder(TargetPartitions).decode)


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
        if not group.configs:
            del fields[_CONSUMER:]  # the last fields, which nearly no classic group has
        return _CLASSIC_HEADER + _encoder.encode(fields)
    fields[_CONSUMER] = _fields_of(group.consumer)
    return _CONSUMER_HEADER + _encoder.encode(fields)


def _fields_of(consumer: ConsumerGroup) -> list[Any]:
    fields: list[Any] = list(msgspec.structs.astuple(consumer))
    fields[_MEMBERS] = encoded_items(consumer.members, _MEMBER_CODEC)
    fields[_TARGETS] = encoded_items(consumer.targets, _TARGET_CODEC)
    return fields


def decode(snapshot: bytes) -> Group:
    """Decode a snapshot.

    Raises :class:`UnreadableSnapshot`. What is decoded when it is first used may raise :class:`UnreadablePart` then.
    """
    if not snapshot:
        raise UnreadableSnapshot("the snapshot is empty")
    decoder = _decoders.get(snapshot[0])
    if decoder is None:
        known = ", ".join(map(str, sorted(_decoders)))
        raise UnreadableSnapshot(f"the snapshot has format version {snapshot[0]}; readable here: {known}")
    try:
        fields: list[Any] = list(msgspec.structs.astuple(decoder.decode(memoryview(snapshot)[1:])))
        fields[_OFFSETS] = _offsets(fields[_OFFSETS], fields[_OFFSET_COUNT])
        fields[_OFFSET_COUNT] = None
        fields[_PENDING_JOINS] = dict.fromkeys(fields[_PENDING_JOINS]) if fields[_PENDING_JOINS] else {}
        fields[_PENDING_SYNCS] = dict.fromkeys(fields[_PENDING_SYNCS]) if fields[_PENDING_SYNCS] else {}
        if fields[_CONSUMER] is not None:
            fields[_CONSUMER] = _consumer(fields[_CONSUMER], snapshot[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnreadablePart) as error:
        raise UnreadableSnapshot(f"the snapshot is damaged: {error}") from error
    return Group(*fields)


def _consumer(stored: Any, version: int) -> ConsumerGroup:
    fields: list[Any] = list(msgspec.structs.astuple(stored))
    members, targets = fields[_MEMBERS], fields[_TARGETS]
    if version != CONSUMER_FORMAT:
        decode = _earlier_member_decoder.decode
        members = {member_id: encode_member(decode(item)) for member_id, item in members.items()}
        targets = {member_id: bytes(item) for member_id, item in targets.items()}
    fields[_MEMBERS] = StoredItems(members, _MEMBER_CODEC, "members")
    fields[_TARGETS] = StoredItems(targets, _TARGET_CODEC, "target assignments")
    return ConsumerGroup(*fields)


def _offsets(encoded: msgspec.Raw | Offsets, count: int | None) -> Offsets:
    """The offsets of a snapshot; a snapshot of an older release may lack them or their count."""
    if not isinstance(encoded, msgspec.Raw):
        return encoded
    stored = StoredOffsets(encoded, count or 0)
    return stored if count else stored.positions


def quarantined(group_id: str) -> Group:
    """A Dead group in place of one whose snapshot cannot be read: it answers everything COORDINATOR_NOT_AVAILABLE."""
    return Group(group_id, "", state=State.DEAD)
