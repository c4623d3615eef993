"""The handlers of the APIs that concern any group: one file per API; :mod:`coordinator_logic.apis` lists the APIs.

Those about offsets are in :mod:`coordinator_logic.offsets`, those that belong to a type of group in the type's room. A
handler may import the rest of the logic except :mod:`coordinator_logic.step` and timing, and no other handler.
"""

from coordinator_logic import apis
from coordinator_logic.events import Request
from coordinator_logic.groups import TYPES
from coordinator_logic.handler import HANDLERS, Handler, refusal
from coordinator_logic.handlers import delete_groups, find_coordinator, quarantine, set_group_config, topics_described
from coordinator_logic.offsets import (
    offset_commit,
    offset_delete,
    offset_fetch,
    reset_offsets,
    take_over_offsets,
    topics_deleted,
    txn_offset_commit,
    write_txn_markers,
)
from coordinator_logic.turn import Turn

HANDLERS.update(
    {
        apis.FIND_COORDINATOR.name: Handler(find_coordinator.handle, find_coordinator.refuse),
        apis.OFFSET_COMMIT.name: Handler(offset_commit.handle, offset_commit.refuse),
        apis.OFFSET_FETCH.name: Handler(offset_fetch.handle, offset_fetch.refuse),
        apis.DELETE_GROUPS.name: Handler(delete_groups.handle, delete_groups.refuse),
        apis.OFFSET_DELETE.name: Handler(offset_delete.handle),
        apis.TXN_OFFSET_COMMIT.name: Handler(txn_offset_commit.handle, txn_offset_commit.refuse),
        apis.WRITE_TXN_MARKERS.name: Handler(write_txn_markers.handle, write_txn_markers.refuse),
        apis.TOPICS_DESCRIBED.name: Handler(topics_described.handle),
        apis.SET_GROUP_CONFIG.name: Handler(set_group_config.handle),
        apis.TOPICS_DELETED.name: Handler(topics_deleted.handle),
        apis.RESET_OFFSETS.name: Handler(reset_offsets.handle),
        apis.TAKE_OVER_OFFSETS.name: Handler(take_over_offsets.handle),
        apis.READ_QUARANTINED_GROUP.name: Handler(quarantine.read),
        apis.DROP_QUARANTINED_GROUP.name: Handler(quarantine.drop),
    }
)

__all__ = ["HANDLERS", "Handler", "handle", "refusal"]


def handle(turn: Turn, request: Request) -> None:
    """Answer a request, or park it: as the group's type does, or else as the API's own handler does."""
    group, api, body = turn.existing, request.address.api, request.body
    answer = None if group is None else TYPES[group.part.type_name].answers.get(api)
    if answer is None or not answer(turn, request, body):
        HANDLERS[api].handle(turn, request, body)
