"""The messages of group membership: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from msgspec.structs import replace

from coordinator_logic.messages.base import NO_GENERATION, Int16, Int32, Message
from coordinator_logic.messages.consumer_groups import TopicDescription

# ---- JoinGroup (API key 11) ----------------------------------------------------------------------------------------


class Protocol(Message, frozen=True):
    """A protocol that a member supports, and its metadata for that protocol (a consumer's subscription)."""

    name: str
    metadata: bytes


class JoinGroupRequest(Message, frozen=True):
    """Join or rejoin a group. ``member_id`` is empty on the first join. Timeouts are in milliseconds."""

    group_id: str
    session_timeout_ms: Int32
    protocol_type: str
    protocols: list[Protocol]
    rebalance_timeout_ms: Int32 = -1
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None
    topics: list[TopicDescription] = []


class JoinedMember(Message, frozen=True):
    """A member, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Message, frozen=True):
    """The new generation. ``members`` is empty for all members but the leader."""

    error_code: Int16 = 0
    generation_id: Int32 = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinedMember] = []


# ---- SyncGroup (API key 14) ----------------------------------------------------------------------------------------


class MemberAssignment(Message, frozen=True):
    """The assignment that the leader computed for one member."""

    member_id: str
    assignment: bytes


class SyncGroupRequest(Message, frozen=True):
    """Request the member's assignment in this generation. The leader sends all members' in ``assignments``.

    ``assignments_too_large``: the assignments do not fit into a record of the requests. The leader sends none, and the
    coordinator refuses them as a broker refuses what its log does not take.
    """

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[MemberAssignment] = []
    assignments_too_large: bool = False


class SyncGroupResponse(Message, frozen=True):
    """The member's assignment; empty if it has none."""

    error_code: Int16 = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


def small_substitute(body: object) -> SyncGroupRequest | None:
    """What to send in place of a request that is too large for its topic; None if nobody else waits for it."""
    if not isinstance(body, SyncGroupRequest) or not body.assignments:
        return None
    return replace(body, assignments=[], assignments_too_large=True)


# ---- Heartbeat (API key 12) ----------------------------------------------------------------------------------------


class HeartbeatRequest(Message, frozen=True):
    """Keep the member's session alive. The response reports a rebalance."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = None

    @property
    def can_wait(self) -> bool:
        return True


class HeartbeatResponse(Message, frozen=True):
    """The result: REBALANCE_IN_PROGRESS (27) asks the member to rejoin."""

    error_code: Int16 = 0


# ---- LeaveGroup (API key 13) ---------------------------------------------------------------------------------------


class LeavingMember(Message, frozen=True):
    """A member to remove: by its id, or by its instance id with an empty ``member_id`` (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Message, frozen=True):
    """Remove members from a group: one ``member_id`` in v0-2, several ``members`` in v3+."""

    group_id: str
    member_id: str = ""
    members: list[LeavingMember] = []


class LeftMember(Message, frozen=True):
    """The result for one member."""

    member_id: str
    group_instance_id: str | None
    error_code: Int16


class LeaveGroupResponse(Message, frozen=True):
    """The result: ``error_code`` in v0-2; in v3+ also one entry for each member, in the order of the request."""

    error_code: Int16 = 0
    members: list[LeftMember] = []
