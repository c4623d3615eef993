"""The messages of the APIs on whole groups: FindCoordinator, DescribeGroups, ListGroups and DeleteGroups."""

from coordinator_logic.messages.base import AUTHORIZED_OPERATIONS_NOT_ASKED, Int16, Int32, Message

# ---- FindCoordinator (API key 10) ----------------------------------------------------------------------------------


CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"
"""Kafka's names of the types of groups."""


class FindCoordinatorRequest(Message, frozen=True):
    """Find the coordinator of one group (``key``, v0-3) or of several (``coordinator_keys``, v4+)."""

    key: str = ""
    key_type: Int16 = 0
    coordinator_keys: list[str] = []


class Coordinator(Message, frozen=True):
    """The coordinator of one key: ``host`` is the request topic, ``node_id`` and ``port`` are its partition."""

    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16 = 0
    error_message: str | None = None


class FindCoordinatorResponse(Message, frozen=True):
    """The coordinator: in the top-level fields in v0-3, in ``coordinators`` in v4+, in the order of the keys."""

    error_code: Int16 = 0
    error_message: str | None = None
    node_id: Int32 = -1
    host: str = ""
    port: Int32 = -1
    coordinators: list[Coordinator] = []


# ---- DescribeGroups (API key 15) -----------------------------------------------------------------------------------


class DescribeGroupsRequest(Message, frozen=True):
    """Describe groups."""

    groups: list[str]
    include_authorized_operations: bool = False


class DescribedMember(Message, frozen=True):
    """A member of a described group. Its metadata is empty unless the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class DescribedGroup(Message, frozen=True):
    """The current state of a group. A group that does not exist is Dead in v0-5, and GROUP_ID_NOT_FOUND (69) in v6."""

    group_id: str
    error_code: Int16 = 0
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedMember] = []
    authorized_operations: Int32 = AUTHORIZED_OPERATIONS_NOT_ASKED


class DescribeGroupsResponse(Message, frozen=True):
    """One entry for each group, in the order of the request."""

    groups: list[DescribedGroup] = []


# ---- ListGroups (API key 16) ---------------------------------------------------------------------------------------


class ListGroupsRequest(Message, frozen=True):
    """List the groups, filtered by state (KIP-518, v4+) and by type (KIP-848, v5+). An empty filter matches all."""

    states_filter: list[str] = []
    types_filter: list[str] = []


class ListedGroup(Message, frozen=True):
    """A group in the list."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class ListGroupsResponse(Message, frozen=True):
    """The groups that match both filters."""

    error_code: Int16 = 0
    groups: list[ListedGroup] = []


# ---- DeleteGroups (API key 42) -------------------------------------------------------------------------------------


class DeleteGroupsRequest(Message, frozen=True):
    """Delete groups. The name ``groups_names`` is Kafka's."""

    groups_names: list[str]


class DeletedGroup(Message, frozen=True):
    """The result for one group."""

    group_id: str
    error_code: Int16


class DeleteGroupsResponse(Message, frozen=True):
    """One entry for each distinct group of the request."""

    results: list[DeletedGroup] = []
