"""The consumer group of a turn, and the configuration that holds for it."""

from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.group_config import GroupConfig, effective
from coordinator_logic.turn import Turn


def consumer_of(turn: Turn) -> ConsumerGroup:
    """The part of the turn's group, for code that knows that it is a consumer group."""
    part = turn.group.part
    assert isinstance(part, ConsumerGroup), f"group {turn.group_id!r} is not a consumer group"
    return part


def consumer_or_none(turn: Turn) -> ConsumerGroup | None:
    """The part of the turn's group; None if the group does not exist, or is of another type."""
    part = None if turn.existing is None else turn.existing.part
    return part if isinstance(part, ConsumerGroup) else None


def group_config(turn: Turn) -> GroupConfig:
    """The configuration that holds for the turn's group."""
    return effective(turn.group.configs, turn.config)
