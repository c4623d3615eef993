"""How the coordinator answers an API, and the table of all handlers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.messages import Message
from coordinator_logic.turn import Turn


class Handler(NamedTuple):
    """How the coordinator answers an API.

    ``handle`` answers a request, or parks it to answer it later. ``refuse(body, version, error)`` makes the response
    that reports one error for the whole request; None if that response has nothing but the error. ``starts_session``
    says of a response whether its member sends its first heartbeat after it; None if no response of the API is such.
    """

    handle: Callable[[Turn, Request, Any], None]
    refuse: Callable[[Any, int, Error], Message] | None = None
    starts_session: Callable[[Response], bool] | None = None


HANDLERS: dict[str, Handler] = {}
"""Every handler, by the name of its API. :mod:`coordinator_logic.handlers` and the types of groups fill it."""


def refusal(api: str, body: Message, version: int, error: Error) -> Message:
    """The response that reports one error for the whole request, in the form that the API has for it."""
    refuse = HANDLERS[api].refuse
    refused: Message = APIS[api].response_type(error_code=error) if refuse is None else refuse(body, version, error)
    return refused
