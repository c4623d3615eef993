"""What the handlers of the group APIs share: their dependencies, and a request event with its response."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.client.directory import GroupDirectory
from streaming.client.errors import CoordinatorError, error_of
from streaming.gateway.groups.channel import GroupChannel, RequestEvent
from streaming.gateway.groups.commit_order import CommitOrder
from streaming.gateway.groups.error_responses import error_response, outage_error
from streaming.gateway.groups.list_requests import ListRequests, made_lazily
from streaming.gateway.groups.timeout_policies import TimeoutPolicies
from streaming.gateway.security.authorization import Authorizer
from streaming.gateway.wire.client_request import Caller

__all__ = ["GroupBackend", "IsCoordinator", "decode_response"]

IsCoordinator = Callable[[str, int], bool]
"""Whether clients find the broker with that node id as the coordinator of that group: ``(group_id, node_id)``."""

KeyT = TypeVar("KeyT", bound=Hashable)
EntryT = TypeVar("EntryT")
RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True)
class GroupBackend:
    """The dependencies of the handlers, shared by all connections."""

    channel: GroupChannel
    directory: GroupDirectory
    authorizer: Authorizer
    is_coordinator: IsCoordinator
    policies: TimeoutPolicies
    lists: ListRequests
    commit_order: CommitOrder = field(default_factory=CommitOrder)

    async def ask_each(
        self,
        api: Api[Any, Any],
        caller: Caller,
        keys: Iterable[KeyT],
        ask: Callable[[KeyT], Awaitable[EntryT]],
    ) -> dict[KeyT, EntryT]:
        """Ask for the groups of a list, see :meth:`ListRequests.ask_each`, as long as the API's timeout policy says."""
        return await self.lists.ask_each(caller, keys, ask, self.policies.by_api[api.name].seconds)

    async def ask_in_order(
        self,
        api: Api[Any, Any],
        caller: Caller,
        group_ids: Sequence[str],
        ask: Callable[[str], Awaitable[EntryT]],
        failed: Callable[[str, Error], EntryT],
    ) -> list[EntryT]:
        """Ask for the groups of a list as :meth:`ask_each` does; returns an entry for each, in their order.

        ``failed`` makes the entry of a group without a result: COORDINATOR_LOAD_IN_PROGRESS, after which admin clients
        ask for it again.
        """
        found = await self.ask_each(api, caller, group_ids, ask)

        def entry(group_id: str) -> EntryT:
            return found.get(group_id) or failed(group_id, Error.COORDINATOR_LOAD_IN_PROGRESS)

        return made_lazily(group_ids, entry)

    async def request(
        self, api: Api[RequestT, ResponseT], version: int, group_id: str, body: RequestT, caller: Caller
    ) -> ResponseT:
        """Append a request event and wait for its response, as long as the API's timeout policy says.

        Every failure becomes a response with the error that the policy names; nothing is raised.
        """
        return await self.response(api, version, body, self.send(api, version, group_id, body, caller))

    def send(
        self, api: Api[RequestT, ResponseT], version: int, group_id: str, body: RequestT, caller: Caller
    ) -> RequestEvent:
        """Append a request event, whose response is expected as long as the API's timeout policy says."""
        seconds = self.policies.for_request(api, body).seconds
        return self.channel.send(group_id, api.name, version, body, caller, seconds)

    async def response(
        self, api: Api[RequestT, ResponseT], version: int, body: RequestT, event: RequestEvent
    ) -> ResponseT:
        """Wait for the response to an event of :meth:`send`; nothing is raised, as in :meth:`request`."""
        try:
            envelope = await event.response
        except CoordinatorError as failure:
            error = outage_error(self.policies.by_api[api.name], failure, appended=event.appended)
            return error_response(api, body, version, error)
        return decode_response(api, body, version, envelope)


def decode_response(
    api: Api[RequestT, ResponseT], body: RequestT, version: int, envelope: ResponseEnvelope
) -> ResponseT:
    """The body of the coordinator's response, or an error response made from the envelope's error code."""
    try:
        response: ResponseT | None = msgspec.json.decode(envelope.body, type=api.response_type | None)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return error_response(api, body, version, Error.UNKNOWN_SERVER_ERROR)
    if response is None:
        return error_response(api, body, version, error_of(envelope.error_code))
    return response
