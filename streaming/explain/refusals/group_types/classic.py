"""Looks up in a classic group what a refusal is explained with."""

from collections.abc import Iterable, Mapping

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.checks import check_generation
from coordinator_logic.messages import HeartbeatRequest, RequestBody
from streaming.explain.story.moves import owners_of


class ClassicLookup:
    """Looks things up in classic groups."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether the member is in the group's generation."""
        if not isinstance(body, HeartbeatRequest):
            return False
        return check_generation(group, body.member_id, body.group_instance_id, body.generation_id) is Error.NONE

    def hand_out_again(self, group: Group, handed_out: Mapping[str, int], now: int) -> list[str]:
        """Hand out the member ids."""
        over = [member_id for member_id, until in handed_out.items() if now >= until or member_id in group.members]
        for member_id in handed_out.keys() - over:
            group.hand_out_member_id(member_id)
        return over

    def generation(self, group: Group, _member_id: str, since: str) -> str:
        """The generation."""
        return f"the group is in generation {group.generation}{since}"

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        """The static member."""
        member = group.member_of_instance(instance_id)
        return None if member is None else member.member_id

    def chosen_protocol(self, group: Group) -> str | None:
        """The protocol of the generation."""
        return group.protocol_name

    def common_protocols(self, group: Group) -> Iterable[str]:
        """The protocols from which one would be chosen."""
        return group.protocol_candidates()

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The owners in the assignment, if it is that of consumers."""
        owned = owners_of({member.member_id: member.assignment for member in group.members.values()})
        return {(place.topic, place.partition): member_id for place, member_id in (owned or {}).items()}
