"""A member of a consumer group, and how far it has got."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.sizes import utf8_length

AssignedPartitions = dict[str, dict[int, int]]
"""By topic id and partition number, the member epoch at which the member got the partition; without empty topics."""


class MemberState(Enum):
    """How far a member is on the way to its target assignment."""

    STABLE = "stable"
    """It has its assignment, or does not know a newer target yet."""
    UNREVOKED_PARTITIONS = "unrevoked-partitions"
    """It must first revoke partitions; its epoch does not advance."""
    UNRELEASED_PARTITIONS = "unreleased-partitions"
    """It has reached the target's epoch, and waits for partitions that other members still hold."""


class ClassicMembership(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a member that speaks the classic protocol brings with JoinGroup: its session (ms) and its protocols."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


class MemberFields(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The fields of a member that come before its partitions.

    ``rebalance_timeout_ms`` is how long it may take to revoke; ``subscribed_topic_names`` are sorted.
    """

    member_id: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE


class ConsumerMember(MemberFields, frozen=True, array_like=True):
    """A member.

    ``assigned`` and ``pending_revocation`` are disjoint; the member holds the partitions of both. ``classic`` is None
    for a member that speaks the consumer group protocol.
    """

    assigned: AssignedPartitions = {}
    pending_revocation: AssignedPartitions = {}
    classic: ClassicMembership | None = None

    def held_partitions(self) -> Iterator[tuple[str, int]]:
        """Yield every partition that no other member may get yet, as (topic id, partition)."""
        for held in (self.assigned, self.pending_revocation):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition

    def is_assigned_all(self, partitions: Partitions) -> bool:
        """Whether all these partitions are assigned to it."""
        return all(numbers <= self.assigned.get(topic_id, {}).keys() for topic_id, numbers in partitions.items())

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has reached the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch


class MemberOutline(MemberFields, frozen=True, array_like=True):
    """A member as a snapshot holds it: most heartbeats need none of its partitions.

    ``partitions`` are those assigned and those pending revocation, in MessagePack: a string of bytes, which a reader
    passes over at once, however many partitions there are.
    """

    partitions: bytes = b""
    classic: ClassicMembership | None = None


_encode = msgspec.msgpack.Encoder().encode
_partitions_decoder = msgspec.msgpack.Decoder(tuple[AssignedPartitions, AssignedPartitions])

decode_outline = msgspec.msgpack.Decoder(MemberOutline).decode
"""Read a member's outline from what :func:`encode_member` returned. Raises ``msgspec.DecodeError``."""


encode_outline: Callable[[MemberOutline], bytes] = _encode


def encode_member(member: ConsumerMember) -> bytes:
    """Encode a member as a snapshot holds it."""
    *fields, assigned, pending_revocation, classic = msgspec.structs.astuple(member)
    return _encode([*fields, _encode((assigned, pending_revocation)), classic])


def decode_member(encoded: bytes) -> ConsumerMember:
    """Decode a member with its partitions. Raises ``msgspec.DecodeError``."""
    *fields, partitions, classic = msgspec.structs.astuple(decode_outline(encoded))
    member: list[Any] = [*fields, *_partitions_decoder.decode(partitions), classic]
    return ConsumerMember(*member)


def size_of_texts(member: ConsumerMember) -> int:
    """The bytes of a member's texts: of its ids, its subscription and its classic protocols."""
    texts = "".join(member.subscribed_topic_names) + member.subscribed_topic_regex
    classic = () if member.classic is None else member.classic.protocols
    texts += "".join(protocol.name for protocol in classic)
    texts += member.member_id + (member.group_instance_id or "") + member.client_id + member.client_host
    return utf8_length(texts) + sum(len(protocol.metadata) for protocol in classic)
