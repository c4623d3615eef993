"""The type of classic groups: its APIs, what it does when a timer fires, and how it begins after it was loaded."""

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.events import Response
from coordinator_logic.group.timer import HEARTBEAT, Timer
from coordinator_logic.groups.classic.data import ClassicGroup, form
from coordinator_logic.groups.classic.rebalance import (
    ABSENT_MEMBERS_CHECK_MS,
    complete_join,
    complete_join_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete_join,
    remove_member,
    reply_to_parked_join,
)
from coordinator_logic.groups.classic.records import ClassicGroupFormed, GenerationStarted
from coordinator_logic.groups.classic.requests import describe_groups, heartbeat, join_group, leave_group, sync_group
from coordinator_logic.groups.classic.timers import (
    INITIAL_JOIN,
    JOIN,
    SYNC,
    arm_initial_join,
    arm_join,
    arm_session,
    arm_sync,
)
from coordinator_logic.groups.group_type import Formation, GroupType
from coordinator_logic.handler import Handler
from coordinator_logic.messages import JoinGroupResponse
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

STARTS_A_SESSION = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""The errors of a JoinGroup whose answer starts a session: MEMBER_ID_REQUIRED hands out an id that expires like one."""


def _join_starts_session(response: Response) -> bool:
    return response.error_code in STARTS_A_SESSION


class ClassicType(GroupType):
    """What a classic group does in a turn."""

    part = ClassicGroup
    formation = Formation(ClassicGroupFormed, form)
    handlers = (
        (apis.JOIN_GROUP, Handler(join_group.handle, join_group.refuse, _join_starts_session)),
        (apis.SYNC_GROUP, Handler(sync_group.handle)),
        (apis.HEARTBEAT, Handler(heartbeat.handle)),
        (apis.LEAVE_GROUP, Handler(leave_group.handle)),
        (apis.DESCRIBE_GROUPS, Handler(describe_groups.handle, describe_groups.refuse)),
    )

    def note_commit(self, turn: Turn, member_id: str) -> None:
        """Restart the session of the member."""
        group = turn.group.part_as(ClassicGroup)
        if group.state is not State.EMPTY:
            turn.arm_heartbeat(member_id, group.members[member_id].session_timeout_ms)

    def restart_members(self, turn: Turn, because: str) -> None:
        """Begin a generation that no member is in, and then a rebalance.

        Whatever members send with the old generation is answered ILLEGAL_GENERATION, also a commit. They give up their
        partitions as lost, join again, and fetch their offsets. A rebalance alone would not do: members commit their
        positions until they have joined, and cooperative ones keep their positions.
        """
        group = turn.group.part_as(ClassicGroup)
        if group.state is State.STABLE:
            turn.record(GenerationStarted(group.generation + 1, group.protocol_name))
            prepare_rebalance(turn, because)

    def fire(self, turn: Turn, timer: Timer) -> None:
        """Carry out the effect of a timer; one of another type has none."""
        if timer.kind == HEARTBEAT:
            _expire_session(turn, timer.member_id)
        elif timer.kind == INITIAL_JOIN:
            _end_initial_delay(turn, timer)
        elif timer.kind == JOIN:
            complete_join(turn)
        elif timer.kind == SYNC:
            _expire_sync(turn, timer.generation)

    def load(self, turn: Turn) -> None:
        """Give every member a full session, and the state its timer; forget parked requests and handed-out member ids.

        A broker writes a group only when it is Stable or Empty, so a rebalance that was in progress did not happen.
        Here the journal has every state. A group in a rebalance stays in it: members that do not ask again in time are
        removed, as if they had never asked.
        """
        group = turn.group.part_as(ClassicGroup)
        group.forget_working_memory()
        for member in group.members.values():
            arm_session(turn, member)
        if group.state is State.PREPARING_REBALANCE:
            _await_joins(turn)
        elif group.state is State.COMPLETING_REBALANCE:
            # Members wait for the leader's assignment. Which of them had asked for it is not known.
            group.pending_syncs = dict.fromkeys(group.members)
            arm_sync(turn)


def _expire_session(turn: Turn, member_id: str) -> None:
    group = turn.group.part_as(ClassicGroup)
    if member_id in group.pending_joins:
        remove_member(turn, member_id, "the member id was not used in time")
        complete_join_if_all_joined(turn, ends_initial_delay=True)
        return
    member = group.members.get(member_id)
    if member is None or member.is_exempt_from_expiry:
        return
    expired = "its first join took too long" if member.is_new else "its session timed out"
    reply_to_parked_join(turn, member, JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    remove_member(turn, member_id, expired)
    rebalance_or_complete_join(turn, f"member {member_id} was removed: {expired}", ends_initial_delay=True)


def _end_initial_delay(turn: Turn, timer: Timer) -> None:
    """Complete the join, or extend the delay if new members joined and the rebalance timeout allows it (KIP-134)."""
    group = turn.group.part_as(ClassicGroup)
    if not (group.new_member_added and timer.remaining_ms):
        complete_join(turn)
        return
    group.new_member_added = False
    delay = min(turn.config.group_initial_rebalance_delay_ms, timer.remaining_ms)
    arm_initial_join(turn, delay, max(timer.remaining_ms - timer.timeout_ms, 0))


def _expire_sync(turn: Turn, generation: int) -> None:
    group = turn.group.part_as(ClassicGroup)
    synced_in_time = generation != group.generation or not group.pending_syncs
    if synced_in_time or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return
    late = list(group.pending_syncs)
    for member_id in late:
        turn.cancel_heartbeat(member_id)
        remove_member(turn, member_id, "did not sync within the rebalance timeout")
    prepare_rebalance(turn, f"members that did not sync in generation {generation}: {len(late)}")


def _await_joins(turn: Turn) -> None:
    group = turn.group.part_as(ClassicGroup)
    if group.previous_state is not State.EMPTY:
        arm_join(turn, at_least_ms=ABSENT_MEMBERS_CHECK_MS)
        return
    delay = turn.config.group_initial_rebalance_delay_ms
    # The members count as new once more: the delay is extended once, in which they can ask again.
    group.new_member_added = True
    arm_initial_join(turn, delay, max(group.rebalance_timeout_ms - delay, 0))
