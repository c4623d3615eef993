"""ListGroups: all groups that pass the filters by state (KIP-518) and type (KIP-848).

ListGroups is not a request event, since an event reaches one group only. A client that wants the list reads the
compacted directory topic and calls this function.
"""

from collections.abc import Iterable

from coordinator_logic.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import QUARANTINED, GroupDirectoryEntry
from coordinator_logic.states import State


def list_groups(entries: Iterable[GroupDirectoryEntry], request: ListGroupsRequest) -> ListGroupsResponse:
    """List the directory entries that pass both filters; an unknown state or type matches nothing.

    A quarantined group is Dead: Kafka's clients know no other state for it.
    """
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    listed = []
    for entry in entries:
        state = State.DEAD.value if entry.group_state == QUARANTINED else entry.group_state
        listed.append(ListedGroup(entry.group_id, entry.protocol_type, state, entry.group_type))
    return ListGroupsResponse(
        groups=[
            group
            for group in listed
            if (not states or group.group_state.lower() in states) and (not types or group.group_type.lower() in types)
        ]
    )
