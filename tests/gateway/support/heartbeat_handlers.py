"""Handlers for Heartbeat requests, for tests that need the gateway to answer some API itself."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.static.primitive import i32Timedelta
from kio.static.protocol import Entity

from coordinator_logic import apis
from streaming.gateway.wire.client_request import ClientRequest, ServedApi

__all__ = ["PARKED", "ParkingHandler", "answer_at_once", "heartbeat_api", "heartbeat_response"]

PARKED = "parked"
"""The group whose requests a :class:`ParkingHandler` parks."""


def heartbeat_api(handle: Callable[[ClientRequest], Awaitable[Entity]]) -> dict[int, ServedApi]:
    """Heartbeat v0 to v4, answered by a handler of the test."""
    assert apis.HEARTBEAT.key is not None
    return {apis.HEARTBEAT.key: ServedApi(apis.HEARTBEAT.name, apis.HEARTBEAT.key, 0, 4, handle)}


def heartbeat_response(error: ErrorCode = ErrorCode.none) -> HeartbeatResponse:
    """A Heartbeat response of version 4."""
    return HeartbeatResponse(throttle_time=i32Timedelta.parse(timedelta(0)), error_code=error)


async def answer_at_once(_request: ClientRequest) -> Entity:
    """A handler that does not wait for anything."""
    return heartbeat_response()


class ParkingHandler:
    """Parks the requests of group :data:`PARKED` until :meth:`release`, and answers all others at once.

    arrived: the group ids of all requests. cancelled: set when a parked request is cancelled.
    """

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.cancelled = threading.Event()
        self._released = asyncio.Event()

    async def handle(self, request: ClientRequest) -> Entity:
        """The handler; see :func:`heartbeat_api`."""
        group_id = request.payload.group_id
        self.arrived.append(group_id)
        if group_id == PARKED:
            try:
                await self._released.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return heartbeat_response()

    async def release(self) -> None:
        """Answer the parked requests."""
        self._released.set()
