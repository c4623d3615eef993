"""What goes into a step and what comes out: requests with their place in the log, and responses."""

from typing import NamedTuple

import msgspec

from coordinator_logic.messages import RequestBody, ResponseBody


class Place(NamedTuple):
    """Where in ``group-requests`` a request stands, and when the broker appended it (ms since the epoch)."""

    timestamp: int
    partition: int
    offset: int


class ReplyAddress(msgspec.Struct, frozen=True, array_like=True):
    """All that is needed to answer a request later; kept in the group while the request is parked.

    ``requested_at`` is the request's append timestamp: with it the latency of the answer can be told.
    """

    api: str
    version: int
    correlation_id: str
    reply_partition: int
    requested_at: int


class Request(msgspec.Struct, frozen=True):
    """A request event: who sent it, where the answer goes, what it asks, and its place in the log."""

    place: Place
    address: ReplyAddress
    client_id: str
    client_host: str
    body: RequestBody
    principal: str | None = None


class Response(msgspec.Struct, frozen=True):
    """An answer to send. ``error_code`` is that of the whole request (see ``ResponseEnvelope``)."""

    address: ReplyAddress
    group_id: str
    error_code: int
    body: ResponseBody
