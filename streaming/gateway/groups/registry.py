"""The group APIs that the gateway serves, with their handlers; keys and versions come from coordinator_logic.apis.

Those of one type of groups are in :mod:`.group_types`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from coordinator_logic.apis import (
    DELETE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SET_GROUP_CONFIG,
    TOPICS_DELETED,
    TOPICS_DESCRIBED,
    TXN_OFFSET_COMMIT,
)
from streaming.gateway.groups.backend import GroupApi, GroupBackend, GroupType
from streaming.gateway.groups.handlers.delete_groups import DeleteGroupsHandler
from streaming.gateway.groups.handlers.list_groups import list_groups
from streaming.gateway.groups.handlers.offset_commit import txn_offset_commit
from streaming.gateway.groups.handlers.offset_delete import offset_delete
from streaming.gateway.groups.handlers.topic_ids import (
    OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS,
    offset_commit,
    offset_fetch,
)
from streaming.gateway.groups.timeout_policies import PolicyOf, consumer_policy, default_policy
from streaming.gateway.wire.client_request import Handler, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS

MAX_FILTERS = 1_000
"""States and types in a ListGroups request. There are some dozen."""

APIS_OF_ALL_TYPES = (
    # All clients retry the commit at the same coordinator.
    GroupApi(
        OFFSET_COMMIT,
        lambda backend: partial(offset_commit, backend),
        consumer_policy,
        # The gateway replaces the ids of topics with names.
        last_version=OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS,
        first_version_with_topic_ids=OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS,
    ),
    # The policy's error is the only retriable one here that all clients know: COORDINATOR_NOT_AVAILABLE ends the
    # consumers of kafka-python and aiokafka.
    GroupApi(
        OFFSET_FETCH,
        lambda backend: partial(offset_fetch, backend),
        consumer_policy,
        last_version=OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS,
        first_version_with_topic_ids=OFFSETS_FIRST_VERSION_WITH_TOPIC_IDS,
    ),
    GroupApi(OFFSET_DELETE, lambda backend: partial(offset_delete, backend), default_policy),
    GroupApi(TXN_OFFSET_COMMIT, lambda backend: partial(txn_offset_commit, backend), default_policy),
    GroupApi(DELETE_GROUPS, lambda backend: DeleteGroupsHandler(backend).handle, default_policy, max_entries=None),
    GroupApi(LIST_GROUPS, lambda backend: partial(list_groups, backend), policy=None, max_entries=MAX_FILTERS),
)


def group_apis(backend: GroupBackend) -> dict[int, ServedApi]:
    """The served APIs by key."""
    served = [_served(api, backend) for api in APIS_OF_ALL_TYPES]
    for of_type in backend.types.values():
        served += [replace(_served(api, backend), feature=of_type.feature) for api in of_type.apis]
    return {api.key: api for api in served}


def timeout_policies(types: Iterable[GroupType]) -> Mapping[str, PolicyOf]:
    """The timeout policies by the APIs' names."""
    apis = [*APIS_OF_ALL_TYPES, *(api for of_type in types for api in of_type.apis)]
    # The gateway's own requests: the first two it repeats, the third is for a client.
    own = dict.fromkeys((TOPICS_DESCRIBED.name, TOPICS_DELETED.name, SET_GROUP_CONFIG.name), default_policy)
    return own | {each.api.name: each.policy for each in apis if each.policy is not None}


def served_api(name: str, key: int, versions: range, handle: Handler) -> ServedApi:
    """An API, served in those of ``versions`` that kio can read and write."""
    lowest, highest = KNOWN_VERSIONS[key]
    return ServedApi(name, key, max(lowest, versions.start), min(highest, versions.stop - 1), handle)


def _served(group_api: GroupApi, backend: GroupBackend) -> ServedApi:
    api = group_api.api
    assert api.key is not None
    last_version = api.max_version if group_api.last_version is None else group_api.last_version
    versions = range(api.min_version, last_version + 1)
    return replace(
        served_api(api.name, api.key, versions, group_api.make_handler(backend)),
        message_type=api.request_type,
        max_entries=group_api.max_entries,
        first_version_with_topic_ids=group_api.first_version_with_topic_ids,
    )
