"""The sizes of a member's data, in bytes."""

from collections.abc import Iterable

from coordinator_logic.groups.classic.member import Member
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.sizes import utf8_length

COPIES_OF_HANDED_OUT_ID = 3
"""A group stores an id in the set of those that are not used yet, and as the key and the owner of its timer."""


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
