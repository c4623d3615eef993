"""What the group APIs stand on, and how one of their requests becomes an event and its answer a response."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from coordinator_logic.errors import Error
from coordinator_logic.handlers import Api
from coordinator_logic.messages import RequestBody, ResponseBody, ResponseEnvelope
from streaming.client.errors import CoordinatorError, error_of
from streaming.gateway.authorization import Authorizer
from streaming.gateway.channel import GroupChannel
from streaming.gateway.directory import GroupDirectory
from streaming.gateway.errors import outage_error, patience, refusal
from streaming.gateway.request import Caller

__all__ = ["GroupBackend", "IsCoordinator", "ask", "body_of"]

IsCoordinator = Callable[[str, int], bool]
"""Whether the broker with that node id stands for the coordinator of that group."""

ResponseT = TypeVar("ResponseT", bound=ResponseBody)


@dataclass(frozen=True)
class GroupBackend:
    """All that the handlers of the group APIs use. None of it belongs to a connection."""

    channel: GroupChannel
    directory: GroupDirectory
    authorizer: Authorizer
    is_coordinator: IsCoordinator


async def ask(
    channel: GroupChannel, api: Api[Any], version: int, group_id: str, body: RequestBody, caller: Caller
) -> ResponseBody:
    """What the coordinator answers, or what fits while it does not answer. Raises nothing of its own."""
    granted = patience(api.name, body)
    sent = channel.send(group_id, api.name, version, body, caller, granted.seconds)
    try:
        envelope = await sent.answer
    except CoordinatorError as failure:
        return refusal(api, body, version, outage_error(granted, failure, appended=sent.appended))
    return body_of(api, body, version, envelope)


def body_of(api: Api[Any], body: RequestBody, version: int, envelope: ResponseEnvelope) -> ResponseBody:
    """The body of the coordinator's answer; one that carries its error where it sent none."""
    try:
        answer: ResponseBody | None = msgspec.json.decode(envelope.body, type=api.response_type | None)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return refusal(api, body, version, Error.UNKNOWN_SERVER_ERROR)
    if answer is None:
        return refusal(api, body, version, error_of(envelope.error_code))
    return answer
