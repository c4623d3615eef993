"""The group APIs that the gateway serves: the one place that says which, in which versions, and who answers."""

from collections.abc import Awaitable, Callable
from functools import partial

from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.static.protocol import Entity

from coordinator_logic.handlers import APIS
from coordinator_logic.messages import ResponseBody
from streaming.gateway.backend import GroupBackend
from streaming.gateway.group_admin_apis import delete_groups, describe_groups, list_groups
from streaming.gateway.membership_apis import Heartbeats, member_request
from streaming.gateway.offset_apis import offset_commit, offset_delete, offset_fetch, txn_offset_commit
from streaming.gateway.projection import to_wire
from streaming.gateway.request import ClientRequest, ServedApi

__all__ = ["group_apis"]

Answer = Callable[[ClientRequest], Awaitable[ResponseBody]]

LIST_GROUPS_KEY = 16
LIST_GROUPS_VERSIONS = range(6)
LAST_TXN_VERSION = 4
"""From v5 on a producer leaves it to the broker to add the group to its transaction: KIP-890."""


def group_apis(backend: GroupBackend) -> dict[int, ServedApi]:
    """The served APIs by key.

    OffsetCommit and OffsetFetch v10 name topics by their ids, which the coordinator does not know: not served.
    """
    answers: dict[str, Answer] = {
        "JoinGroup": partial(member_request, backend, "JoinGroup"),
        "SyncGroup": partial(member_request, backend, "SyncGroup"),
        "Heartbeat": Heartbeats(backend).handle,
        "LeaveGroup": partial(member_request, backend, "LeaveGroup"),
        "OffsetCommit": partial(offset_commit, backend),
        "OffsetFetch": partial(offset_fetch, backend),
        "OffsetDelete": partial(offset_delete, backend),
        "TxnOffsetCommit": partial(txn_offset_commit, backend),
        "DescribeGroups": partial(describe_groups, backend),
        "DeleteGroups": partial(delete_groups, backend),
        "ListGroups": partial(list_groups, backend),
    }
    served = (_served(name, answer) for name, answer in answers.items())
    return {api.key: api for api in served}


def _served(name: str, answer: Answer) -> ServedApi:
    key, versions = _versions(name)

    async def handle(request: ClientRequest) -> Entity:
        return to_wire(await answer(request), load_response_schema(key, request.version))

    return ServedApi(name, key, versions[0], versions[-1], handle)


def _versions(name: str) -> tuple[int, list[int]]:
    """An API's key, and its versions that both the coordinator and kio know."""
    if name == "ListGroups":
        key, ours = LIST_GROUPS_KEY, LIST_GROUPS_VERSIONS
    else:
        api = APIS[name]
        assert api.key is not None
        key, ours = api.key, range(api.min_version, api.max_version + 1)
    if name == "TxnOffsetCommit":
        ours = range(ours.start, LAST_TXN_VERSION + 1)
    theirs = schema_name_map[api_key_map[key]]
    return key, [version for version in ours if version in theirs]
