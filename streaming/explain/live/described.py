"""What the coordinator says of a group of any type, in words."""

from streaming.explain.live.group_types import description_of, type_of
from streaming.explain.live.group_types.description import AnyDescribedGroup

__all__ = ["headline", "protocol_of"]


def headline(group: AnyDescribedGroup) -> tuple[str, str]:
    """A group's id, and the rest of its headline: its state, its protocol or epochs, and its number of members."""
    return group.group_id, f": {group.group_state} ({protocol_of(group)}), {len(group.members)} member(s)"


def protocol_of(group: AnyDescribedGroup) -> str:
    """How its members share the partitions: a protocol and its type, or epochs and an assignor."""
    return description_of(type_of(group)).protocol(group)
