"""What looks up in a group what a refusal is explained with; a type that is not listed has no more than this."""

from collections.abc import Iterable, Mapping

from coordinator_logic.group import Group
from coordinator_logic.messages import RequestBody


class TypeLookup:
    """Looks things up in groups of one type."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether a request is a heartbeat that the group certainly accepts."""
        return False

    def hand_out_again(self, group: Group, handed_out: Mapping[str, int], now: int) -> list[str]:
        """Hand out member ids that can be used until a time, ms since the epoch, if the group would know them.

        Returns those that are used, or can no longer be used.
        """
        return []

    def generation(self, group: Group, member_id: str, since: str) -> str:
        """The generation or the epoch of the group and of a member; ``since`` says when it began."""
        return f"the group is in generation {group.generation}{since}"

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        """The member id of the static member with an instance id."""
        return None

    def chosen_protocol(self, group: Group) -> str | None:
        """The protocol that the members have voted for; None in a group without votes."""
        return None

    def common_protocols(self, group: Group) -> Iterable[str]:
        """The protocols that all members support; none in a group without votes."""
        return ()

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The member id of who owns a partition, or has yet to give it up, by topic and partition."""
        return {}
