"""The handlers: one file per API, which says how a group answers it; :mod:`coordinator_logic.apis` lists the APIs.

A handler may import the rest of the logic except :mod:`coordinator_logic.step` and the timers, and no other handler.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.requests import describe_groups, heartbeat, join_group, leave_group, sync_group
from coordinator_logic.groups.consumer.requests import consumer_group_describe, consumer_group_heartbeat
from coordinator_logic.handlers import delete_groups, find_coordinator, set_group_config, topics_described
from coordinator_logic.handlers.quarantine import drop_quarantined_group, read_quarantined_group
from coordinator_logic.messages import ResponseBody
from coordinator_logic.offsets import (
    offset_commit,
    offset_delete,
    offset_fetch,
    reset_offsets,
    topics_deleted,
    txn_offset_commit,
    write_txn_markers,
)
from coordinator_logic.turn import Turn


class Handler(NamedTuple):
    """How a group answers an API.

    ``handle`` answers a request, or parks it to answer it later. ``refuse(body, version, error)`` makes the response
    that reports one error for the whole request, in the form that the API has for it.
    """

    handle: Callable[[Turn, Request, Any], None]
    refuse: Callable[[Any, int, Error], ResponseBody]


HANDLERS: dict[str, Handler] = {
    apis.FIND_COORDINATOR.name: Handler(find_coordinator.handle, find_coordinator.refuse),
    apis.JOIN_GROUP.name: Handler(join_group.handle, join_group.refuse),
    apis.SYNC_GROUP.name: Handler(sync_group.handle, sync_group.refuse),
    apis.HEARTBEAT.name: Handler(heartbeat.handle, heartbeat.refuse),
    apis.LEAVE_GROUP.name: Handler(leave_group.handle, leave_group.refuse),
    apis.OFFSET_COMMIT.name: Handler(offset_commit.handle, offset_commit.refuse),
    apis.OFFSET_FETCH.name: Handler(offset_fetch.handle, offset_fetch.refuse),
    apis.DESCRIBE_GROUPS.name: Handler(describe_groups.handle, describe_groups.refuse),
    apis.DELETE_GROUPS.name: Handler(delete_groups.handle, delete_groups.refuse),
    apis.OFFSET_DELETE.name: Handler(offset_delete.handle, offset_delete.refuse),
    apis.TXN_OFFSET_COMMIT.name: Handler(txn_offset_commit.handle, txn_offset_commit.refuse),
    apis.WRITE_TXN_MARKERS.name: Handler(write_txn_markers.handle, write_txn_markers.refuse),
    apis.CONSUMER_GROUP_HEARTBEAT.name: Handler(consumer_group_heartbeat.handle, consumer_group_heartbeat.refuse),
    apis.CONSUMER_GROUP_DESCRIBE.name: Handler(consumer_group_describe.handle, consumer_group_describe.refuse),
    apis.TOPICS_DESCRIBED.name: Handler(topics_described.handle, topics_described.refuse),
    apis.SET_GROUP_CONFIG.name: Handler(set_group_config.handle, set_group_config.refuse),
    apis.TOPICS_DELETED.name: Handler(topics_deleted.handle, topics_deleted.refuse),
    apis.RESET_OFFSETS.name: Handler(reset_offsets.handle, reset_offsets.refuse),
    apis.READ_QUARANTINED_GROUP.name: Handler(read_quarantined_group.handle, read_quarantined_group.refuse),
    apis.DROP_QUARANTINED_GROUP.name: Handler(drop_quarantined_group.handle, drop_quarantined_group.refuse),
}
"""Every handler, by the name of its API."""

__all__ = ["HANDLERS", "Handler"]
