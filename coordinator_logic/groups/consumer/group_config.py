"""The settings of a single consumer group. Source: GroupConfig of Kafka 4.3."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.turn import Turn

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


class GroupConfig(NamedTuple):
    """What holds for a group, times in milliseconds."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def group_config(turn: Turn) -> GroupConfig:
    """What holds for the turn's group."""
    return effective(turn.group.configs, turn.config)


def effective(overrides: Mapping[str, int], config: CoordinatorConfig) -> GroupConfig:
    """What holds for a group with these values of its own; a value outside the present bounds counts as the bound."""
    default = GroupConfig(
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
        config.group_consumer_assignment_interval_ms,
    )
    if not overrides:
        return default
    values = [
        min(max(overrides[name], allowed.start), allowed.stop - 1) if name in overrides else value
        for value, (name, allowed) in zip(default, settings(config).items(), strict=True)
    ]
    return GroupConfig(*values)


def settings(config: CoordinatorConfig) -> dict[str, range]:
    """The values that the coordinator allows for each name, in the order of :class:`GroupConfig`."""
    return {
        SESSION_TIMEOUT: range(
            config.group_consumer_min_session_timeout_ms, config.group_consumer_max_session_timeout_ms + 1
        ),
        HEARTBEAT_INTERVAL: range(
            config.group_consumer_min_heartbeat_interval_ms, config.group_consumer_max_heartbeat_interval_ms + 1
        ),
        ASSIGNMENT_INTERVAL: range(
            config.group_consumer_min_assignment_interval_ms, config.group_consumer_max_assignment_interval_ms + 1
        ),
    }
