"""Room in a client's connection for the answer to a request, before the request is carried out."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

Settle = Callable[[int], None]
"""Replaces the bytes that are reserved by those that are needed; it may be called again."""

AwaitRoom = Callable[[int, bool], Awaitable[Settle]]
"""Waits until there is room for so many bytes, and reserves it until the request is answered; the second argument says
whether the request may be parked."""

ASSIGNMENT_BYTES = 256 * 1024
"""The room for an answer with an assignment, or with the members' metadata, of which nothing says how large it is: one
connection, which nearly always is that of one member, has four such requests in flight. A broker has one."""


class NoAnswerRoom(Exception):
    """The answer has no room for one more part: the client is to ask for this part again."""


async def _at_once(_size: int, _may_park: bool) -> Settle:
    """The gateway's own requests have no connection."""
    return lambda _size: None


current_answer_room: ContextVar[AwaitRoom] = ContextVar("current_answer_room", default=_at_once)
"""In a handler's context: waits for room in the connection of the client whose request is handled."""


async def await_answer_room(size: int, *, may_park: bool = False) -> Settle:
    """Wait until the client's connection has room for an answer, or for a further part of it, of about ``size`` bytes.

    Call the result with the size that it has, once that is known. The answer to a request that may be parked until
    other members have sent theirs takes room in its own connection only: it must not hold up the others' requests.
    Raises :class:`NoAnswerRoom` for a further part that would make the answer too large.
    """
    return await current_answer_room.get()(size, may_park)
