"""The group APIs that the gateway serves, with their handlers; keys and versions come from coordinator_logic.apis."""

from dataclasses import replace
from functools import partial
from typing import Any

from coordinator_logic.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
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
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.groups.handlers.consumer_group_describe import consumer_group_describe
from streaming.gateway.groups.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from streaming.gateway.groups.handlers.delete_groups import DeleteGroupsHandler
from streaming.gateway.groups.handlers.describe_groups import describe_groups
from streaming.gateway.groups.handlers.heartbeat import HeartbeatHandler
from streaming.gateway.groups.handlers.list_groups import list_groups
from streaming.gateway.groups.handlers.member_requests import join_group, member_request
from streaming.gateway.groups.handlers.offset_commit import txn_offset_commit
from streaming.gateway.groups.handlers.offset_delete import offset_delete
from streaming.gateway.groups.handlers.topic_ids import offset_commit, offset_fetch
from streaming.gateway.groups.list_requests import MAX_ENTRIES
from streaming.gateway.groups.subscriptions.heartbeat_topics import HeartbeatTopics
from streaming.gateway.groups.watched_groups import WatchedGroups
from streaming.gateway.wire.client_request import Handler, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from streaming.gateway.wire.topic_ids import OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS

__all__ = ["group_apis", "served_api"]

LISTS_OF_NAMES = (DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE, DELETE_GROUPS)
"""APIs whose requests are lists of strings. An event of any other has :data:`MAX_ENTRIES` at most, which may be in as
many topics. A larger request is refused before it is read: to make and to free 100,000 objects holds the loop."""

MAX_FILTERS = 1_000
"""States and types in a ListGroups request. There are some dozen."""

LAST_TXN_OFFSET_COMMIT_VERSION = 4
"""From v5 on, a producer expects the broker to add the group to its transaction (KIP-890)."""


LAST_OFFSETS_VERSION = OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS
"""The last version of OffsetCommit and OffsetFetch, whose ids of topics the gateway replaces with names."""


def group_apis(backend: GroupBackend, topics: HeartbeatTopics, watched: WatchedGroups) -> dict[int, ServedApi]:
    """The served APIs by key.

    topics: finds what heartbeats of the newer consumer protocol have to say about topics.
    watched: the groups of that protocol whose members are served here.
    """
    heartbeats = ConsumerGroupHeartbeatHandler(backend, topics, watched)
    apis = (
        _served_group_api(JOIN_GROUP, partial(join_group, backend, watched)),
        _served_group_api(SYNC_GROUP, partial(member_request, backend, SYNC_GROUP)),
        _served_group_api(HEARTBEAT, HeartbeatHandler(backend).handle),
        _served_group_api(LEAVE_GROUP, partial(member_request, backend, LEAVE_GROUP)),
        _served_group_api(OFFSET_COMMIT, partial(offset_commit, backend), LAST_OFFSETS_VERSION),
        _served_group_api(OFFSET_FETCH, partial(offset_fetch, backend), LAST_OFFSETS_VERSION),
        _served_group_api(OFFSET_DELETE, partial(offset_delete, backend)),
        _served_group_api(TXN_OFFSET_COMMIT, partial(txn_offset_commit, backend), LAST_TXN_OFFSET_COMMIT_VERSION),
        _served_group_api(DESCRIBE_GROUPS, partial(describe_groups, backend)),
        _served_group_api(DELETE_GROUPS, DeleteGroupsHandler(backend).handle),
        _served_group_api(LIST_GROUPS, partial(list_groups, backend)),
        _served_group_api(CONSUMER_GROUP_HEARTBEAT, heartbeats.handle),
        _served_group_api(CONSUMER_GROUP_DESCRIBE, partial(consumer_group_describe, backend)),
    )
    return {api.key: api for api in apis}


def served_api(name: str, key: int, versions: range, handle: Handler) -> ServedApi:
    """An API, served in those of ``versions`` that kio can read and write."""
    lowest, highest = KNOWN_VERSIONS[key]
    return ServedApi(name, key, max(lowest, versions.start), min(highest, versions.stop - 1), handle)


def _served_group_api(api: Api[Any, Any], handle: Handler, last_version: int | None = None) -> ServedApi:
    assert api.key is not None
    versions = api.versions if last_version is None else range(api.min_version, last_version + 1)
    served = served_api(api.name, api.key, versions, handle)
    return replace(served, message_type=api.request_type, max_entries=_max_entries(api))


def _max_entries(api: Api[Any, Any]) -> int | None:
    if api in LISTS_OF_NAMES:
        return None
    return MAX_FILTERS if api is LIST_GROUPS else 2 * MAX_ENTRIES
