"""The members of a group, whatever its type: the one place of the journal that looks at a group by its type."""

from collections.abc import Collection, Mapping
from typing import Protocol

from coordinator_logic.group import CLASSIC_TYPE, CONSUMER_TYPE, Group

__all__ = ["MembersOfType", "members_of"]


class MembersOfType(Protocol):
    """Looks at the members of groups of one type."""

    def ids(self, group: Group) -> Collection[str]:
        """The ids of all members."""

    def leader(self, group: Group) -> str | None:
        """The member id of the leader; None in a group that has none."""

    def subscription(self, group: Group, member_id: str) -> list[str] | None:
        """The topics that a member subscribes to by name, None if the coordinator does not know them."""

    def remove_all(self, group: Group) -> None:
        """Leave a group without members, and without what belongs to them."""


class _Classic:
    def ids(self, group: Group) -> Collection[str]:
        return group.members.keys()

    def leader(self, group: Group) -> str | None:
        return group.leader

    def subscription(self, _group: Group, _member_id: str) -> list[str] | None:
        return None

    def remove_all(self, group: Group) -> None:
        for member_id in list(group.members):
            group.remove_member(member_id)
        group.leader = group.protocol_name = group.subscribed_topics = None


class _Consumer:
    def ids(self, group: Group) -> Collection[str]:
        assert group.consumer is not None
        return group.consumer.members.keys()

    def leader(self, _group: Group) -> str | None:
        return None

    def subscription(self, group: Group, member_id: str) -> list[str] | None:
        assert group.consumer is not None
        member = group.consumer.members.get(member_id)
        return None if member is None else list(member.subscribed_topic_names)

    def remove_all(self, group: Group) -> None:
        group.consumer = None
        group.leader = group.protocol_name = group.subscribed_topics = None


_BY_TYPE: Mapping[str, MembersOfType] = {CLASSIC_TYPE: _Classic(), CONSUMER_TYPE: _Consumer()}


def members_of(group: Group) -> MembersOfType:
    """What looks at the members of groups of this one's type."""
    return _BY_TYPE[group.group_type]
