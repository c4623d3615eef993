"""The writer of snapshots in formats 1 and 4, which release 0.1.0 reads: the way back to it.

A classic group has format 1, a consumer group format 4. Neither has what came later, and what is not needed to continue
a group: the ids of the topics of its offsets, and which topics were matched with its patterns.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets, offset_count
from coordinator_logic.group import Group
from coordinator_logic.group.part import GroupPart
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember, encode_member
from coordinator_logic.groups.conversions.older_snapshots import FIELDS_OF_CONSUMER, FIELDS_OF_GROUP
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.stored_parts import StoredItems

CLASSIC_FORMAT, CONSUMER_FORMAT = 1, 4
FIELDS_OF_OFFSET, FIELDS_OF_TIMER = 6, 6
"""How many fields an offset and a timer had."""

_encode = msgspec.msgpack.encode


class NotInFormat(ValueError):
    """The format has no room for a group of this type."""


def encode_in_format_4(group: Group) -> bytes:
    """Encode the group as release 0.1.0 did.

    Raises :class:`NotInFormat`, and :class:`~coordinator_logic.stored_parts.UnreadablePart` for a damaged part.
    """
    part = group.part
    values: dict[str, Any] = {
        **msgspec.structs.asdict(group),
        **{name: getattr(part, name) for name in GroupPart.__struct_fields__},
        **_values_of_part(group.group_id, part),
        "offsets": _offsets(group.offsets),
        "stored_offset_count": offset_count(group.offsets),
        "timers": {key: msgspec.structs.astuple(each)[:FIELDS_OF_TIMER] for key, each in group.timers.items()},
        "open_transactions": {
            producer_id: (each.producer_epoch, _offsets(each.offsets))
            for producer_id, each in group.open_transactions.items()
        },
    }
    fields = [values[name] for name in FIELDS_OF_GROUP]
    if values["consumer"] is None:
        # A release before 0.1.0, which knows no consumer groups, continues a group without the last two fields.
        return bytes((CLASSIC_FORMAT,)) + _encode(fields if group.configs else fields[:-2])
    return bytes((CONSUMER_FORMAT,)) + _encode(fields)


def _values_of_part(group_id: str, part: GroupPart) -> Mapping[str, Any]:
    match part:
        case ClassicGroup():
            return {
                "protocol_name": part.protocol_name,
                "leader": part.leader,
                "members": {member_id: _member(member) for member_id, member in part.members.items()},
                "pending_joins": list(part.pending_joins),
                "pending_syncs": list(part.pending_syncs),
                "new_member_added": part.new_member_added,
                "subscribed_topics": part.subscribed_topics,
                "consumer": None,
            }
        case ConsumerGroup():
            return {
                "protocol_name": None,
                "leader": None,
                "members": {},
                "pending_joins": [],
                "pending_syncs": [],
                "new_member_added": False,
                "subscribed_topics": None,
                "consumer": _consumer(part),
            }
    raise NotInFormat(f"group {group_id} is a {part.type_name} group, which the format does not have")


def _consumer(part: ConsumerGroup) -> list[Any]:
    values = {name: getattr(part, name) for name in FIELDS_OF_CONSUMER}
    values["members"] = {member_id: _consumer_member(member) for member_id, member in part.members.items()}
    assert isinstance(part.targets, StoredItems)
    values["targets"] = part.targets.for_snapshot()
    return list(values.values())


def _consumer_member(member: ConsumerMember) -> bytes:
    membership = member.classic
    if membership is None:
        return encode_member(member)
    fields: list[Any] = msgspec.msgpack.decode(encode_member(msgspec.structs.replace(member, classic=None)))
    return _encode([*fields[:-1], (membership.session_timeout_ms, _protocols(membership.protocols))])


def _member(member: Member) -> tuple[Any, ...]:
    return tuple({**msgspec.structs.asdict(member), "protocols": _protocols(member.protocols)}.values())


def _protocols(protocols: Iterable[Protocol]) -> list[tuple[str, bytes]]:
    return [(protocol.name, protocol.metadata) for protocol in protocols]


def _offsets(offsets: Offsets) -> dict[str, dict[int, tuple[Any, ...]]]:
    return {
        topic: {partition: _offset(committed) for partition, committed in partitions.items()}
        for topic, partitions in offsets.items()
    }


def _offset(committed: CommittedOffset) -> tuple[Any, ...]:
    return msgspec.structs.astuple(committed)[:FIELDS_OF_OFFSET]
