"""The readers of snapshots in formats 1 to 4, in which a group was classic unless it had a consumer group's fields.

Format 1 is that of classic groups, formats 2 to 4 those of consumer groups. In format 2 members and targets are in
place, not strings of bytes; in formats 2 and 3, the partitions of a member are in place. The structs of this module are
those of the release that wrote format 4; nothing else changes them. Where fields were only appended since, the present
structs read them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from coordinator_logic.committed_offsets import Offsets
from coordinator_logic.group import Group
from coordinator_logic.group.part import GroupPart
from coordinator_logic.group.timer import EXPIRY, Effect, Timer
from coordinator_logic.group.transactions import OpenTransaction
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.timers import INITIAL_JOIN, JOIN
from coordinator_logic.groups.consumer.data import ConsumerGroup, ResolvedPattern
from coordinator_logic.groups.consumer.members import (
    AssignedPartitions,
    ClassicMembership,
    ConsumerMember,
    MemberFields,
    MemberOutline,
    encode_member,
    encode_outline,
)
from coordinator_logic.groups.consumer.target_assignment import Topic
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.states import State
from coordinator_logic.stored_parts import stored_struct

_Protocols = tuple[tuple[str, bytes], ...]
_ClassicMembership = tuple[int, _Protocols]


class _MemberInPlace(MemberFields, frozen=True, array_like=True):
    """A member of a consumer group in formats 2 and 3."""

    assigned: AssignedPartitions = {}
    pending_revocation: AssignedPartitions = {}
    classic: _ClassicMembership | None = None


class _MemberOutline(MemberFields, frozen=True, array_like=True):
    """A member of a consumer group in format 4."""

    partitions: bytes = b""
    classic: _ClassicMembership | None = None


class _Consumer(msgspec.Struct, array_like=True):
    generation: int = 1
    target_epoch: int = 1
    target_at: int = 0
    metadata_hash: str = ""
    members: dict[str, msgspec.Raw] = {}
    targets: dict[str, msgspec.Raw] = {}
    topics: dict[str, Topic] = {}
    patterns: dict[str, ResolvedPattern] = {}
    refresh_requested: bool = True
    has_new_topics: bool = False
    has_unresolved_patterns: bool = False


class _Group(msgspec.Struct, array_like=True):
    group_id: str
    incarnation: str
    state: State = State.EMPTY
    previous_state: State = State.DEAD
    state_timestamp: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, msgspec.Raw] = {}
    offsets: Offsets = {}
    sequence: int = 0
    clock: int = 0
    pending_joins: list[str] = []
    pending_syncs: list[str] = []
    new_member_added: bool = False
    timers: dict[str, Timer] = {}
    subscribed_topics: list[str] | None = None
    open_transactions: dict[int, OpenTransaction] = {}
    stored_offset_count: int | None = None
    join_answered_at: int = 0
    sessions_from: int = 0
    checked_until: int = 0
    next_check_at: int = 0
    append_distance: int = 0
    applied_until: dict[int, int] = {}
    consumer: _Consumer | None = None
    configs: dict[str, int] = {}


FIELDS_OF_GROUP, FIELDS_OF_CONSUMER = _Group.__struct_fields__, _Consumer.__struct_fields__
"""The fields of a group and of a consumer group in format 4, in their order."""

_decoder = msgspec.msgpack.Decoder(_Group)
_bytes = msgspec.msgpack.Decoder(bytes).decode
_member_decoder = msgspec.msgpack.Decoder(stored_struct(Member, {"protocols": _Protocols}))
_outline_decoder = msgspec.msgpack.Decoder(_MemberOutline)
_in_place_decoder = msgspec.msgpack.Decoder(_MemberInPlace)
_EFFECTS = {INITIAL_JOIN: Effect.ENDS_DELAY, JOIN: Effect.COMPLETES_JOIN, EXPIRY: Effect.EXPIRES_OFFSETS}


def _group(
    encoded: memoryview, bytes_of: Callable[[msgspec.Raw], bytes], stored_member: Callable[[bytes], bytes]
) -> Group:
    old = _decoder.decode(encoded)
    part: GroupPart = _classic(old) if old.consumer is None else _consumer(old.consumer, bytes_of, stored_member)
    part.state, part.previous_state, part.state_timestamp = old.state, old.previous_state, old.state_timestamp
    return Group(
        old.group_id,
        old.incarnation,
        part,
        old.offsets,
        old.sequence,
        old.clock,
        {key: _timer(timer) for key, timer in old.timers.items()},
        old.open_transactions,
        join_answered_at=old.join_answered_at,
        sessions_from=old.sessions_from,
        checked_until=old.checked_until,
        next_check_at=old.next_check_at,
        append_distance=old.append_distance,
        applied_until=old.applied_until,
        configs=old.configs,
    )


def _timer(timer: Timer) -> Timer:
    return msgspec.structs.replace(timer, effect=_EFFECTS.get(timer.kind, Effect.REMOVES_MEMBERS))


def _protocols(protocols: _Protocols) -> list[Protocol]:
    return [Protocol(*protocol) for protocol in protocols]


def _classic(old: _Group) -> ClassicGroup:
    members = {}
    for member_id, encoded in old.members.items():
        member = _member_decoder.decode(encoded)
        member.protocols = _protocols(member.protocols)
        members[member_id] = Member(*msgspec.structs.astuple(member))
    return ClassicGroup(
        generation=old.generation,
        protocol_type=old.protocol_type,
        protocol_name=old.protocol_name,
        leader=old.leader,
        members=members,
        pending_joins=dict.fromkeys(old.pending_joins),
        pending_syncs=dict.fromkeys(old.pending_syncs),
        new_member_added=old.new_member_added,
        subscribed_topics=old.subscribed_topics,
    )


def _consumer(
    old: _Consumer, bytes_of: Callable[[msgspec.Raw], bytes], stored_member: Callable[[bytes], bytes]
) -> ConsumerGroup:
    fields = msgspec.structs.asdict(old)
    fields["members"] = {member_id: stored_member(bytes_of(item)) for member_id, item in old.members.items()}
    fields["targets"] = {member_id: bytes_of(item) for member_id, item in old.targets.items()}
    return ConsumerGroup.restored(ConsumerGroup.stored_as()(**fields))


def _membership(old: _ClassicMembership | None) -> ClassicMembership | None:
    return None if old is None else ClassicMembership(old[0], tuple(_protocols(old[1])))


def _member_in_place(encoded: bytes) -> bytes:
    *fields, classic = msgspec.structs.astuple(_in_place_decoder.decode(encoded))
    member: list[Any] = [*fields, _membership(classic)]
    return encode_member(ConsumerMember(*member))


def _member(encoded: bytes) -> bytes:
    *fields, classic = msgspec.structs.astuple(_outline_decoder.decode(encoded))
    # All others are stored as they were.
    outline: list[Any] = [*fields, _membership(classic)]
    return encoded if classic is None else encode_outline(MemberOutline(*outline))


OLDER_FORMATS: dict[int, Callable[[memoryview], Group]] = {
    1: partial(_group, bytes_of=_bytes, stored_member=_member),
    2: partial(_group, bytes_of=bytes, stored_member=_member_in_place),
    3: partial(_group, bytes_of=_bytes, stored_member=_member_in_place),
    4: partial(_group, bytes_of=_bytes, stored_member=_member),
}
"""How a snapshot of each format is read, without its first byte. Raises ``msgspec.DecodeError`` if it is damaged."""
