"""What a request handler receives: the decoded request and its caller."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kio.static.protocol import Entity

from coordinator_logic.messages import Message


class QuotaEntity(NamedTuple):
    """Whose time is counted together: all connections of a principal from one IP address."""

    host: str
    principal: str


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    client_id: from the request header; empty where that has none.
    host: the IP address of the client.
    principal: as the broker authenticated it, in Kafka's form ``User:alice``; ``User:ANONYMOUS`` without SASL.
    """

    client_id: str
    host: str
    principal: str

    @property
    def quota_entity(self) -> QuotaEntity:
        """Whose share of the event loop the request uses."""
        return QuotaEntity(self.host, self.principal)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A decoded request of one version. ``node_id`` is the broker whose advertised listener received it.

    payload: a message of the API's ``message_type``; for an API without one, an entity of kio.
    """

    caller: Caller
    node_id: int
    api_key: int
    version: int
    payload: Any


Handler = Callable[[ClientRequest], Awaitable[Entity | Message]]
"""Returns the response: a message, or an entity of kio in the request's version. An exception closes the client's
connection."""


class Feature(NamedTuple):
    """A feature that ApiVersions shows (KIP-584), with the lowest and the highest level; the highest is in use."""

    name: str
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API that a handler of the gateway answers. ApiVersions offers exactly this range of versions.

    message_type: as which requests are decoded; by default, as kio's entity of their version.
    max_entries: the array entries of a request; by default as many as of any request (``max-request-entries``).
    first_version_with_topic_ids: the first version that names topics by their ids, which brokers know since Kafka 2.8.
    feature: shown to clients with the API, in place of the broker's feature of that name.
    brokers_feature: shown to clients with the API as far as the broker has it, up to this highest level.
    concerns: whether a decoded request is the handler's; the broker answers all others. None: every request is.
    """

    name: str
    key: int
    min_version: int
    max_version: int
    handle: Handler
    message_type: type[Message] | None = None
    max_entries: int | None = None
    first_version_with_topic_ids: int | None = None
    feature: Feature | None = None
    brokers_feature: Feature | None = None
    concerns: Callable[[Any], bool] | None = None
