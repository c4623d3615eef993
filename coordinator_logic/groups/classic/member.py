"""A member of a classic group, and the sizes of its data in bytes."""

from collections.abc import Iterable

import msgspec

from coordinator_logic.events import ReplyAddress
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.sizes import utf8_length

COPIES_OF_HANDED_OUT_ID = 3
"""A group stores an id in the set of those that are not used yet, and as the key and the owner of its timer."""


class Member(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A member of a classic group. Its protocols are in order of preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[Protocol]
    assignment: bytes = b""
    is_new: bool = True
    parked_join: ReplyAddress | None = None
    parked_sync: ReplyAddress | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345), and so keeps its place when its process restarts."""
        return self.group_instance_id is not None

    @property
    def is_exempt_from_expiry(self) -> bool:
        """Whether its session cannot expire, because it waits for an answer of the coordinator.

        A new member is not exempt: if its first join takes longer than ``NEW_MEMBER_JOIN_TIMEOUT_MS``, its client
        has probably gone.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Its metadata for a protocol; empty if it does not support the protocol."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")

    def lists_same_protocols(self, protocols: list[Protocol]) -> bool:
        """Whether these are its protocols: same names, same metadata, same order."""
        return self.protocols == protocols


def size_of_protocols(protocols: Iterable[Protocol]) -> int:
    """The size of the protocols' names and metadata."""
    return sum([utf8_length(protocol.name) + len(protocol.metadata) for protocol in protocols])


def size_of_handed_out_ids(member_ids: Iterable[str]) -> int:
    """The size of member ids that are not used yet, with the copies in their timers' keys and timers."""
    return utf8_length("".join(member_ids)) * COPIES_OF_HANDED_OUT_ID


def size_of_member(member: Member) -> int:
    """The size of a member's identifiers, protocols and assignment."""
    # One text instead of many calls: a group's first join in a batch measures all its members.
    texts = member.member_id + (member.group_instance_id or "") + member.client_id + member.client_host
    size = len(member.assignment)
    for protocol in member.protocols:
        texts += protocol.name
        size += len(protocol.metadata)
    return size + utf8_length(texts)
