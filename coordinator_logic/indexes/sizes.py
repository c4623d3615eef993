"""The sizes of a member's data, in bytes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator_logic.group import Member, MemberProtocol
    from coordinator_logic.messages import Protocol


COPIES_OF_HANDED_OUT_ID = 3
"""A group stores an id in the set of those that are not used yet, and as the key and the owner of its timer."""


def utf8_length(text: str) -> int:
    """The number of bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def size_of_protocols(protocols: "Iterable[MemberProtocol | Protocol]") -> int:
    """The size of the protocols' names and metadata."""
    return sum([utf8_length(protocol.name) + len(protocol.metadata) for protocol in protocols])


def size_of_handed_out_ids(member_ids: "Iterable[str]") -> int:
    """The size of member ids that are not used yet, with the copies in their timers' keys and timers."""
    return utf8_length("".join(member_ids)) * COPIES_OF_HANDED_OUT_ID


def size_of_member(member: "Member") -> int:
    """The size of a member's identifiers, protocols and assignment."""
    # One text instead of many calls: a group's first join in a batch measures all its members.
    texts = member.member_id + (member.group_instance_id or "") + member.client_id + member.client_host
    size = len(member.assignment)
    for protocol in member.protocols:
        texts += protocol.name
        size += len(protocol.metadata)
    return size + utf8_length(texts)
