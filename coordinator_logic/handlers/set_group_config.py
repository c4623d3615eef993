"""SetGroupConfig, an event that Kafka's wire protocol does not have: a group gets a configuration of its own.

In Kafka, IncrementalAlterConfigs for a resource of type GROUP does that, and the controller keeps the configuration.
"""

from collections.abc import Mapping

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group.settings import InvalidGroupConfig, changed
from coordinator_logic.groups.group_type import TYPES
from coordinator_logic.messages import SetGroupConfigRequest, SetGroupConfigResponse
from coordinator_logic.records import GroupConfigChanged
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: SetGroupConfigRequest) -> None:
    """Change the configuration of the group, which is created if need be; answer with all of it."""
    before = {} if turn.existing is None else turn.existing.configs
    if not body.group_id:
        message = "Default group resources are not allowed."
        turn.reply(request.address, SetGroupConfigResponse(Error.INVALID_REQUEST, message))
        return
    try:
        after = _changed(before, body.configs, turn.config)
    except InvalidGroupConfig as reason:
        turn.reply(request.address, SetGroupConfigResponse(Error.INVALID_CONFIG, str(reason), _texts(before)))
        return
    if after != before:
        if turn.existing is None:
            turn.create_group()
        turn.record(GroupConfigChanged(after))
    turn.reply(request.address, SetGroupConfigResponse(configs=_texts(after)))


def _changed(before: Mapping[str, int], changes: Mapping[str, str | None], config: CoordinatorConfig) -> dict[str, int]:
    settings = {name: allowed for each in TYPES.values() for name, allowed in each.settings(config).items()}
    after = changed(before, changes, settings)
    for group_type in TYPES.values():
        if (reason := group_type.check_settings(after, config)) is not None:
            raise InvalidGroupConfig(reason)
    return after


def _texts(configs: dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in sorted(configs.items())}


def refuse(body: SetGroupConfigRequest, version: int, error: Error) -> SetGroupConfigResponse:
    """Report one error for the whole request."""
    return SetGroupConfigResponse(error)
