"""ListGroups (API key 16), v0-5: all groups that pass the filters by state (KIP-518) and type (KIP-848).

No group can answer this, and an event reaches one group only. The listing is made where it is wanted, from the
compacted directory topic, by this function.
"""

from collections.abc import Iterable

from coordinator_logic.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import GroupDirectoryEntry


def list_groups(entries: Iterable[GroupDirectoryEntry], request: ListGroupsRequest) -> ListGroupsResponse:
    """The directory's entries that pass both filters. A state or type that does not exist matches nothing."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(entry.group_id, entry.protocol_type, entry.group_state, entry.group_type)
            for entry in entries
            if (not states or entry.group_state.lower() in states) and (not types or entry.group_type.lower() in types)
        ]
    )
