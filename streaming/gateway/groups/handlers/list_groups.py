"""ListGroups, answered from the directory topic: an event reaches one group only, so no event could answer it."""

from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups as filter_entries
from coordinator_logic.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.partitioning import hash_table_slot
from coordinator_logic.records import GroupDirectoryEntry
from coordinator_logic.sizes import utf8_length
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.wire.answer_room import await_answer_room
from streaming.gateway.wire.client_request import Caller, ClientRequest

TYPICAL_ENTRY_BYTES = 40
"""A group in the answer, without its id and its protocol type."""

MAX_SORTED = 1_000


async def list_groups(backend: GroupBackend, request: ClientRequest) -> ListGroupsResponse:
    """List the groups whose coordinator is the broker that the client connected to.

    They come in the order of a broker's hash table, unless there are so many that to sort them would hold the loop.
    A caller with DESCRIBE on the cluster sees all of them, any other caller the groups on which it has DESCRIBE.
    """
    if not (backend.directory.is_complete and await backend.is_directory_current()):
        return ListGroupsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
    body: ListGroupsRequest = request.payload

    entries = backend.directory.entries()
    await await_answer_room(sum(await backend.lists.make_each(request.caller, entries, _size)))
    filters = ListGroupsRequest(
        await _present(backend, request.caller, body.states_filter, {entry.group_state for entry in entries}),
        await _present(backend, request.caller, body.types_filter, {entry.group_type for entry in entries}),
    )

    def listed(entry: GroupDirectoryEntry) -> list[ListedGroup]:
        return (
            filter_entries([entry], filters).groups if backend.is_coordinator(entry.group_id, request.node_id) else []
        )

    groups = [group for each in await backend.lists.make_each(request.caller, entries, listed) for group in each]
    if len(groups) <= MAX_SORTED:
        groups.sort(key=lambda group: hash_table_slot(group.group_id))
    visible = await backend.authorizer.describable(request.caller, [group.group_id for group in groups])
    return ListGroupsResponse(groups=[group for group, is_visible in zip(groups, visible, strict=True) if is_visible])


def _size(entry: GroupDirectoryEntry) -> int:
    return TYPICAL_ENTRY_BYTES + utf8_length(entry.group_id + entry.protocol_type)


async def _present(backend: GroupBackend, caller: Caller, names: list[str], present: set[str]) -> list[str]:
    """The names of a filter that match a group; one that matches none if none does, since no name would match all."""
    wanted = set(await backend.lists.make_each(caller, names, lambda name: name.strip().lower()))
    return [name for name in present if name.lower() in wanted] or names[:1]
