"""Counts and look-ups over a group's members."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from coordinator_logic.events import ReplyAddress
from coordinator_logic.groups.classic.member import Member, size_of_handed_out_ids, size_of_member, size_of_protocols
from coordinator_logic.messages.membership import Protocol

T = TypeVar("T")


class MemberIndex:
    """What a group needs to know of all its members to handle a request of one.

    Whoever changes a member's protocols, assignment or parked JoinGroup does so through the index; members are added
    and removed through the group.

    Args:
        members: The group's members.
        handed_out: The member ids that were handed out and are not used yet.

    Attributes:
        awaiting_join: The number of members with a parked JoinGroup.
        size: The bytes of the members' identifiers, protocols and assignments, and of the handed-out member ids.
        preferences: How many members list the same protocols in the same order, by the protocols' names.
        supporters: How many members list a protocol, for each that a member lists.
        member_of_instance: The id of the static member with an instance id.
    """

    __slots__ = ("awaiting_join", "member_of_instance", "preferences", "size", "supporters")

    def __init__(self, members: Iterable[Member], handed_out: Iterable[str]) -> None:
        self.awaiting_join = 0
        self.size = size_of_handed_out_ids(handed_out)
        self.preferences: dict[tuple[str, ...], int] = {}
        self.supporters: dict[str, int] = {}
        self.member_of_instance: dict[str, str] = {}
        # Without a call of add() for each: a group's first join in a batch counts all its members.
        for member in members:
            names = _protocol_names(member.protocols)
            self.preferences[names] = self.preferences.get(names, 0) + 1
            self.size += size_of_member(member)
            if member.parked_join is not None:
                self.awaiting_join += 1
            if member.group_instance_id is not None:
                self.member_of_instance.setdefault(member.group_instance_id, member.member_id)
        for names, count in self.preferences.items():
            for name in set(names):
                self.supporters[name] = self.supporters.get(name, 0) + count

    def add(self, member: Member) -> None:
        """Count a member that was added."""
        self._count_protocols(member.protocols, 1)
        self.size += size_of_member(member)
        self.awaiting_join += member.parked_join is not None
        if member.group_instance_id is not None:
            self.member_of_instance.setdefault(member.group_instance_id, member.member_id)

    def remove(self, member: Member) -> None:
        """Forget a member that was removed."""
        self._count_protocols(member.protocols, -1)
        self.size -= size_of_member(member)
        self.awaiting_join -= member.parked_join is not None
        instance_id = member.group_instance_id
        if instance_id is not None and self.member_of_instance.get(instance_id) == member.member_id:
            del self.member_of_instance[instance_id]

    def hand_out(self, member_id: str) -> None:
        """Count a member id that was handed out."""
        self.size += size_of_handed_out_ids([member_id])

    def withdraw(self, member_id: str) -> None:
        """Forget a member id that was used, or will not be."""
        self.size -= size_of_handed_out_ids([member_id])

    def change_protocols(self, member: Member, protocols: list[Protocol]) -> None:
        """Give a member other protocols."""
        self._count_protocols(member.protocols, -1)
        self.size += size_of_protocols(protocols) - size_of_protocols(member.protocols)
        member.protocols = protocols
        self._count_protocols(protocols, 1)

    def assign(self, member: Member, assignment: bytes) -> None:
        """Give a member another assignment."""
        self.size += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def park_join(self, member: Member, address: ReplyAddress | None) -> None:
        """Park a member's JoinGroup; None: it is no longer parked."""
        self.awaiting_join += (address is not None) - (member.parked_join is not None)
        member.parked_join = address

    def _count_protocols(self, protocols: Sequence[Protocol], change: int) -> None:
        names = _protocol_names(protocols)
        _change_count(self.preferences, names, change)
        for name in set(names):
            _change_count(self.supporters, name, change)


def _protocol_names(protocols: Sequence[Protocol]) -> tuple[str, ...]:
    return tuple([protocol.name for protocol in protocols])


def _change_count(counts: dict[T, int], counted: T, change: int) -> None:
    counts[counted] = counts.get(counted, 0) + change
    if not counts[counted]:
        del counts[counted]
