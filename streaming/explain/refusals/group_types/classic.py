"""Looks up in a classic group what a refusal is explained with."""

from collections.abc import Iterable, Mapping

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.messages import HeartbeatRequest, RequestBody
from streaming.explain.refusals.group_types.type_lookup import TypeLookup
from streaming.explain.story.moves import owners_of


class ClassicLookup(TypeLookup):
    """Looks things up in classic groups."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether the member is in the group's generation."""
        if not isinstance(body, HeartbeatRequest):
            return False
        return _part(group).check_generation(body.member_id, body.group_instance_id, body.generation_id) is Error.NONE

    def hand_out_again(self, group: Group, handed_out: Mapping[str, int], now: int) -> list[str]:
        """Hand out the member ids."""
        classic = _part(group)
        over = [member_id for member_id, until in handed_out.items() if now >= until or member_id in classic.members]
        for member_id in handed_out.keys() - over:
            classic.hand_out_member_id(member_id)
        return over

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        """The static member."""
        member = _part(group).member_of_instance(instance_id)
        return None if member is None else member.member_id

    def chosen_protocol(self, group: Group) -> str | None:
        """The protocol of the generation."""
        return _part(group).protocol_name

    def common_protocols(self, group: Group) -> Iterable[str]:
        """The protocols from which one would be chosen."""
        return _part(group).protocol_candidates()

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The owners in the assignment, if it is that of consumers."""
        owned = owners_of({member.member_id: member.assignment for member in _part(group).members.values()})
        return {(place.topic, place.partition): member_id for place, member_id in (owned or {}).items()}


def _part(group: Group) -> ClassicGroup:
    assert isinstance(group.part, ClassicGroup)
    return group.part
