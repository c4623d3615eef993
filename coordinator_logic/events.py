"""The events of a step: requests with their place in the log, and responses."""

from typing import NamedTuple

import msgspec

from coordinator_logic.messages.base import Message


class Place(NamedTuple):
    """The position of a request in ``group-requests``; ``timestamp`` is its append time, ms since the epoch."""

    timestamp: int
    partition: int
    offset: int


class ReplyAddress(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Everything needed to answer a request later; the group keeps it while the request is parked.

    ``requested_at`` is the request's append time (ms since the epoch), from which the latency of the answer is
    measured.
    """

    api: str
    version: int
    correlation_id: str
    reply_partition: int
    requested_at: int


class Request(msgspec.Struct, frozen=True):
    """A request event: its sender, the address for the answer, the body, and its place in the log.

    ``is_signed`` says whether a gateway vouches for the sender.
    """

    place: Place
    address: ReplyAddress
    client_id: str
    client_host: str
    body: Message
    principal: str | None = None
    is_signed: bool = False


class Response(msgspec.Struct, frozen=True):
    """A response to send. ``error_code`` is the error of the whole request (see ``ResponseEnvelope``)."""

    address: ReplyAddress
    group_id: str
    error_code: int
    body: Message
