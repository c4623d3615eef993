"""The group APIs that the gateway serves, with their handlers; keys and versions come from coordinator_logic.apis."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from kio.index import load_response_schema
from kio.static.protocol import Entity

from coordinator_logic.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    Api,
)
from coordinator_logic.messages import ResponseBody
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.handlers.delete_groups import DeleteGroupsHandler
from streaming.gateway.groups.handlers.describe_groups import describe_groups
from streaming.gateway.groups.handlers.heartbeat import HeartbeatHandler
from streaming.gateway.groups.handlers.list_groups import list_groups
from streaming.gateway.groups.handlers.member_requests import member_request
from streaming.gateway.groups.handlers.offset_commit import offset_commit, txn_offset_commit
from streaming.gateway.groups.handlers.offset_delete import offset_delete
from streaming.gateway.groups.handlers.offset_fetch import offset_fetch
from streaming.gateway.groups.list_requests import MAX_ENTRIES
from streaming.gateway.groups.projection import to_wire_lazily
from streaming.gateway.wire.client_request import ClientRequest, Handler, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS

__all__ = ["group_apis", "served_api"]

GroupHandler = Callable[[ClientRequest], Awaitable[ResponseBody]]

LISTS_OF_NAMES = (DESCRIBE_GROUPS, DELETE_GROUPS)
"""APIs whose requests are lists of strings. An event of any other has :data:`MAX_ENTRIES` at most, which may be in as
many topics. A larger request is refused before it is read: to make and to free 100,000 objects holds the loop."""

MAX_FILTERS = 1_000
"""States and types in a ListGroups request. There are some dozen."""

LAST_TXN_OFFSET_COMMIT_VERSION = 4
"""From v5 on, a producer expects the broker to add the group to its transaction (KIP-890)."""


def group_apis(backend: GroupBackend) -> dict[int, ServedApi]:
    """The served APIs by key.

    OffsetCommit and OffsetFetch v10 name topics by their ids, which the coordinator does not know: not served.
    """
    apis = (
        _served_group_api(JOIN_GROUP, partial(member_request, backend, JOIN_GROUP)),
        _served_group_api(SYNC_GROUP, partial(member_request, backend, SYNC_GROUP)),
        _served_group_api(HEARTBEAT, HeartbeatHandler(backend).handle),
        _served_group_api(LEAVE_GROUP, partial(member_request, backend, LEAVE_GROUP)),
        _served_group_api(OFFSET_COMMIT, partial(offset_commit, backend)),
        _served_group_api(OFFSET_FETCH, partial(offset_fetch, backend)),
        _served_group_api(OFFSET_DELETE, partial(offset_delete, backend)),
        _served_group_api(TXN_OFFSET_COMMIT, partial(txn_offset_commit, backend), LAST_TXN_OFFSET_COMMIT_VERSION),
        _served_group_api(DESCRIBE_GROUPS, partial(describe_groups, backend)),
        _served_group_api(DELETE_GROUPS, DeleteGroupsHandler(backend).handle),
        _served_group_api(LIST_GROUPS, partial(list_groups, backend)),
    )
    return {api.key: api for api in apis}


def served_api(name: str, key: int, versions: range, handle: Handler, max_entries: int | None = None) -> ServedApi:
    """An API, served in those of ``versions`` that kio can read and write."""
    lowest, highest = KNOWN_VERSIONS[key]
    return ServedApi(name, key, max(lowest, versions.start), min(highest, versions.stop - 1), handle, max_entries)


def _served_group_api(api: Api[Any, Any], handler: GroupHandler, last_version: int | None = None) -> ServedApi:
    key = api.key
    assert key is not None
    versions = api.versions if last_version is None else range(api.min_version, last_version + 1)

    async def handle(request: ClientRequest) -> Entity:
        response_type = load_response_schema(key, request.version)
        return to_wire_lazily(await handler(request), response_type)

    return served_api(api.name, key, versions, handle, _max_entries(api))


def _max_entries(api: Api[Any, Any]) -> int | None:
    if api in LISTS_OF_NAMES:
        return None
    return MAX_FILTERS if api is LIST_GROUPS else 2 * MAX_ENTRIES
