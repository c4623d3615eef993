"""The types of groups: what differs by a group's type, for the whole gateway.

A further type is one entry of :data:`GROUP_TYPES`, beside the files of its APIs in ``handlers/``.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from coordinator_logic.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.gateway.groups.backend import GroupApi, GroupType
from streaming.gateway.groups.handlers.consumer_group_describe import consumer_group_describe, look_up_consumer_group
from streaming.gateway.groups.handlers.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatHandler,
    consumer_group_heartbeat_policy,
)
from streaming.gateway.groups.handlers.describe_groups import describe_groups, topics_of_classic_members
from streaming.gateway.groups.handlers.heartbeat import HeartbeatHandler, heartbeat_policy
from streaming.gateway.groups.handlers.member_requests import (
    join_group,
    join_policy,
    leave_policy,
    member_request,
    sync_policy,
)
from streaming.gateway.groups.timeout_policies import default_policy
from streaming.gateway.wire.client_request import Feature

CLASSIC = GroupType(
    CLASSIC_TYPE,
    apis=(
        GroupApi(JOIN_GROUP, lambda backend: partial(join_group, backend), join_policy),
        GroupApi(SYNC_GROUP, lambda backend: partial(member_request, backend, SYNC_GROUP), sync_policy),
        GroupApi(HEARTBEAT, lambda backend: HeartbeatHandler(backend).handle, heartbeat_policy),
        GroupApi(LEAVE_GROUP, lambda backend: partial(member_request, backend, LEAVE_GROUP), leave_policy),
        GroupApi(DESCRIBE_GROUPS, lambda backend: partial(describe_groups, backend), default_policy, max_entries=None),
    ),
    topics_to_convert=topics_of_classic_members,
)

CONSUMER = GroupType(
    CONSUMER_TYPE,
    apis=(
        GroupApi(
            CONSUMER_GROUP_HEARTBEAT,
            lambda backend: ConsumerGroupHeartbeatHandler(backend).handle,
            consumer_group_heartbeat_policy,
            first_version_with_topic_ids=0,
        ),
        GroupApi(
            CONSUMER_GROUP_DESCRIBE,
            lambda backend: partial(consumer_group_describe, backend),
            default_policy,
            max_entries=None,
            first_version_with_topic_ids=0,
        ),
    ),
    feature=Feature("group.version", 0, 1),
    look_up=look_up_consumer_group,
)

GROUP_TYPES: Mapping[str, GroupType] = MappingProxyType({each.name: each for each in (CLASSIC, CONSUMER)})
"""The types of groups by name."""
