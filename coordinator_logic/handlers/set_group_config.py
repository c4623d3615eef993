"""SetGroupConfig, an event that Kafka's wire protocol does not have: a group gets a configuration of its own.

In Kafka, IncrementalAlterConfigs for a resource of type GROUP does that, and the controller keeps the configuration.
A group's own value holds in place of the coordinator's. As in Kafka, a group can have settings of any type: they are
kept for the type that it has, or will have. Source: GroupConfig of Kafka 4.3.
"""

from collections.abc import Mapping

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.group_type import TYPES
from coordinator_logic.messages import SetGroupConfigRequest, SetGroupConfigResponse
from coordinator_logic.records import GroupConfigChanged
from coordinator_logic.turn import Turn


class _InvalidGroupConfig(Exception):
    """A configuration that a group cannot have; the request is answered INVALID_CONFIG."""


def handle(turn: Turn, request: Request, body: SetGroupConfigRequest) -> None:
    """Change the configuration of the group, which is created if need be; answer with all of it."""
    before = {} if turn.existing is None else turn.existing.configs
    if not body.group_id:
        message = "Default group resources are not allowed."
        turn.reply(request.address, SetGroupConfigResponse(Error.INVALID_REQUEST, message))
        return
    defaults = _texts(_defaults(turn.config))
    try:
        after = _changed(before, body.configs, turn.config)
    except _InvalidGroupConfig as reason:
        answer = SetGroupConfigResponse(Error.INVALID_CONFIG, str(reason), _texts(before), defaults)
        turn.reply(request.address, answer)
        return
    if after != before and not body.validate_only:
        if turn.existing is None:
            turn.create_group()
        turn.record(GroupConfigChanged(after))
    turn.reply(request.address, SetGroupConfigResponse(configs=_texts(after), defaults=defaults))


def _changed(before: Mapping[str, int], changes: Mapping[str, str | None], config: CoordinatorConfig) -> dict[str, int]:
    """The group's own values after changes, of which None removes one."""
    settings = {name: allowed for each in TYPES.values() for name, allowed in each.settings(config).items()}
    after = dict(before)
    for name, text in changes.items():
        if name not in settings:
            raise _InvalidGroupConfig(f"Unknown group config name: {name}")
        if text is None:
            after.pop(name, None)
        else:
            after[name] = _value(name, text, settings[name])
    for group_type in TYPES.values():
        if (reason := group_type.check_settings(after, config)) is not None:
            raise _InvalidGroupConfig(reason)
    return after


def _defaults(config: CoordinatorConfig) -> dict[str, int]:
    return {name: value for each in TYPES.values() for name, value in each.default_settings(config).items()}


def _value(name: str, text: str, allowed: range) -> int:
    # int() would accept underscores, and digits of other scripts.
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise _InvalidGroupConfig(f"Invalid value {text} for configuration {name}: Not a number of type INT")
    # A number of many digits is out of bounds, and takes long to read.
    value = int(text) if len(text) <= len(str(2**31)) else allowed.stop
    of_type, _, setting = name.partition(".")
    if value < allowed.start:
        raise _InvalidGroupConfig(f"{name} must be greater than or equal to group.{of_type}.min.{setting}")
    if value >= allowed.stop:
        raise _InvalidGroupConfig(f"{name} must be less than or equal to group.{of_type}.max.{setting}")
    return value


def _texts(configs: dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in sorted(configs.items())}
