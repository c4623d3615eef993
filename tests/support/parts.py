"""The part of a group that a test expects, by its type."""

from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.consumer.data import ConsumerGroup


def classic(group: Group) -> ClassicGroup:
    """The part of a classic group."""
    return group.part_as(ClassicGroup)


def classic_or_empty(group: Group) -> ClassicGroup:
    """The part of a classic group; one without members for a group of another type."""
    return group.part if isinstance(group.part, ClassicGroup) else ClassicGroup()


def consumer_part(group: Group | None) -> ConsumerGroup | None:
    """The part of a consumer group; None if the group does not exist, or is of another type."""
    part = None if group is None else group.part
    return part if isinstance(part, ConsumerGroup) else None


def consumer_group(group: Group) -> ConsumerGroup:
    """The part of a consumer group."""
    return group.part_as(ConsumerGroup)
