"""The configuration of a single consumer group: Kafka's names, and the coordinator's bounds.

A group's own value holds in place of the coordinator's. Source: GroupConfig of Kafka 4.3.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


class InvalidGroupConfig(Exception):
    """A configuration that a group cannot have; the request is answered INVALID_CONFIG."""


class GroupConfig(NamedTuple):
    """What holds for a group, times in milliseconds."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


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
        min(max(overrides[name], least), most) if name in overrides else value
        for value, (name, (least, most)) in zip(default, _bounds(config).items(), strict=True)
    ]
    return GroupConfig(*values)


def changed(
    overrides: Mapping[str, int], changes: Mapping[str, str | None], config: CoordinatorConfig
) -> dict[str, int]:
    """A group's own values after changes, of which None removes one.

    Raises:
        InvalidGroupConfig: an unknown name, a value that is no integer or outside the coordinator's bounds, or a
            session timeout that is not longer than the heartbeat interval.
    """
    bounds = _bounds(config)
    after = dict(overrides)
    for name, text in changes.items():
        if name not in bounds:
            raise InvalidGroupConfig(f"Unknown group config name: {name}")
        if text is None:
            after.pop(name, None)
        else:
            after[name] = _value(name, text, bounds[name])
    held = effective(after, config)
    if held.session_timeout_ms <= held.heartbeat_interval_ms:
        raise InvalidGroupConfig(f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}.")
    return after


def _value(name: str, text: str, bounds: tuple[int, int]) -> int:
    least, most = bounds
    # int() would accept underscores, and digits of other scripts.
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise InvalidGroupConfig(f"Invalid value {text} for configuration {name}: Not a number of type INT")
    # A number of many digits is out of bounds, and takes long to read.
    value = int(text) if len(text) <= len(str(2**31)) else most + 1
    if not least <= value <= most:
        raise InvalidGroupConfig(f"{name} must be in the range {least} to {most} inclusive.")
    return value


def _bounds(config: CoordinatorConfig) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of each name, in the order of :class:`GroupConfig`."""
    return {
        SESSION_TIMEOUT: (config.group_consumer_min_session_timeout_ms, config.group_consumer_max_session_timeout_ms),
        HEARTBEAT_INTERVAL: (
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        ASSIGNMENT_INTERVAL: (
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    }
