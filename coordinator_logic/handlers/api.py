"""What a handler registers: the API's name and key, the versions it serves, its types and its two functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import RequestBody, ResponseBody
from coordinator_logic.turn import Turn

RequestT = TypeVar("RequestT", bound=RequestBody)


@dataclass(frozen=True)
class Api(Generic[RequestT]):
    """An API of the coordinator. ``key`` is None for an event that is no request of Kafka's protocol.

    ``handle`` answers a request, now or (parked) later. ``refuse(body, version, error)`` makes the answer that
    carries one error for the whole request, in the shape that the API has for it.
    """

    name: str
    key: int | None
    min_version: int
    max_version: int
    request_type: type[RequestT]
    response_type: type[ResponseBody]
    handle: Callable[[Turn, Request, RequestT], None]
    refuse: Callable[[RequestT, int, Error], ResponseBody]
