"""A client's request as the gateway's handlers see it, and what a handler is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kio.static.protocol import Entity

__all__ = ["Caller", "ClientRequest", "Handler", "ServedApi"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the request header's client id, the peer's address, and the principal that the broker authenticated.

    ``principal`` is Kafka's form, ``User:alice``; ``User:ANONYMOUS`` where nobody had to say who they are.
    """

    client_id: str
    host: str
    principal: str


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A decoded request of one version, from a connection to the listener that stands for broker ``node_id``."""

    caller: Caller
    node_id: int
    api_key: int
    version: int
    payload: Entity


Handler = Callable[[ClientRequest], Awaitable[Entity]]
"""Answers a request with the response payload of the same version. An exception closes the client's connection."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API that the gateway answers itself. ApiVersions tells these very ranges, so it cannot lie."""

    name: str
    key: int
    min_version: int
    max_version: int
    handle: Handler
