"""DeleteGroups: one request event for each group, whose result a repeated request gets too."""

import asyncio
from collections import OrderedDict

from coordinator_logic.apis import DELETE_GROUPS
from coordinator_logic.errors import Error
from coordinator_logic.messages import DeletedGroup, DeleteGroupsRequest, DeleteGroupsResponse
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.channel import RequestEvent
from streaming.gateway.groups.list_requests import made_lazily
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.futures import retrieve_failure

MAX_OPEN_DELETIONS = 10_000


class DeleteGroupsHandler:
    """Deletes groups, and remembers the deletions whose results no client has.

    A client that got no result in time sends its request again. The first event is in the log and deletes the group; a
    second one would be answered GROUP_ID_NOT_FOUND. So the repeated request waits for the result of the first event.
    """

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._open: OrderedDict[tuple[Caller, str], RequestEvent] = OrderedDict()

    async def handle(self, request: ClientRequest) -> DeleteGroupsResponse:
        """Delete groups, each once, in the request's order. The caller needs DELETE on each of them.

        Groups beyond :data:`MAX_GROUPS` are answered COORDINATOR_LOAD_IN_PROGRESS: admin clients ask for them again.
        """
        body: DeleteGroupsRequest = request.payload

        async def delete(group_id: str) -> DeletedGroup:
            return await self._delete(request, group_id)

        deleted = await self._backend.ask_each(DELETE_GROUPS, request.caller, body.groups_names, delete)

        def entry(group_id: str) -> DeletedGroup:
            return deleted.get(group_id) or DeletedGroup(group_id, Error.COORDINATOR_LOAD_IN_PROGRESS)

        group_ids = await self._backend.lists.different(request.caller, body.groups_names)
        return DeleteGroupsResponse(made_lazily(group_ids, entry))

    async def _delete(self, request: ClientRequest, group_id: str) -> DeletedGroup:
        backend, caller = self._backend, request.caller
        if not await backend.authorizer.allows(caller, Operation.DELETE, group_id):
            return DeletedGroup(group_id, Error.GROUP_AUTHORIZATION_FAILED)
        body = DeleteGroupsRequest([group_id])
        policy = backend.policies.of(DELETE_GROUPS, body)
        # A group that is only at the brokers is deleted here too: so it does not begin again with its offsets there.
        refusal = await backend.refusal(DELETE_GROUPS, group_id, body, caller)
        if refusal is not None:
            return DeletedGroup(group_id, refusal)
        event = self._open.get((caller, group_id))
        if event is None:
            seconds = backend.policies.timeouts.late_deletion_seconds
            event = backend.channel.send(group_id, DELETE_GROUPS.name, request.version, body, caller, seconds)
            self._remember((caller, group_id), event)
        await asyncio.wait((event.response,), timeout=policy.seconds)
        if not event.response.done():
            return DeletedGroup(group_id, policy.unanswered if event.appended else policy.unsent)
        self._forget((caller, group_id), event)
        response = await backend.response(DELETE_GROUPS, request.version, body, event)
        (result,) = response.results
        return result

    def _remember(self, deletion: tuple[Caller, str], event: RequestEvent) -> None:
        self._open[deletion] = event
        if len(self._open) > MAX_OPEN_DELETIONS:
            self._open.popitem(last=False)
        # Later, the same request is meant for a new group of that name.
        patience = self._backend.policies.timeouts.late_deletion_seconds
        asyncio.get_running_loop().call_later(patience, self._forget, deletion, event)
        event.response.add_done_callback(retrieve_failure)

    def _forget(self, deletion: tuple[Caller, str], event: RequestEvent) -> None:
        if self._open.get(deletion) is event:
            del self._open[deletion]
