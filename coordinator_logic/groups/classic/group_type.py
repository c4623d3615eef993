"""The type of classic groups."""

from collections.abc import Sequence
from typing import Any, ClassVar

from coordinator_logic import apis
from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.events import Response
from coordinator_logic.group.part import GroupPart
from coordinator_logic.group.timer import Timer
from coordinator_logic.groups.classic import expirations
from coordinator_logic.groups.classic.access import classic_of
from coordinator_logic.groups.classic.data import ClassicGroup, form
from coordinator_logic.groups.classic.rebalance import begin_generation_without_join, prepare_rebalance
from coordinator_logic.groups.classic.records import ClassicGroupFormed
from coordinator_logic.groups.classic.requests import describe_groups, heartbeat, join_group, leave_group, sync_group
from coordinator_logic.groups.group_type import Formation, GroupType
from coordinator_logic.handler import Handler
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

STARTS_A_SESSION = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""The errors of a JoinGroup whose answer starts a session: MEMBER_ID_REQUIRED hands out an id that expires like one."""


def _join_starts_session(response: Response) -> bool:
    return response.error_code in STARTS_A_SESSION


class ClassicType(GroupType):
    """What a classic group does in a turn."""

    part: ClassVar[type[GroupPart]] = ClassicGroup
    formation: ClassVar[Formation | None] = Formation(ClassicGroupFormed, form)
    handlers: ClassVar[Sequence[tuple[Api[Any, Any], Handler]]] = (
        (apis.JOIN_GROUP, Handler(join_group.handle, join_group.refuse, _join_starts_session)),
        (apis.SYNC_GROUP, Handler(sync_group.handle, sync_group.refuse)),
        (apis.HEARTBEAT, Handler(heartbeat.handle, heartbeat.refuse)),
        (apis.LEAVE_GROUP, Handler(leave_group.handle, leave_group.refuse)),
        (apis.DESCRIBE_GROUPS, Handler(describe_groups.handle, describe_groups.refuse)),
    )

    def note_commit(self, turn: Turn, member_id: str) -> None:
        """Restart the session of the member."""
        group = classic_of(turn)
        if group.state is not State.EMPTY:
            turn.arm_heartbeat(member_id, group.members[member_id].session_timeout_ms)

    def restart_members(self, turn: Turn, because: str) -> None:
        """Begin a generation that no member is in, and then a rebalance.

        Whatever members send with the old generation is answered ILLEGAL_GENERATION, also a commit. They give up their
        partitions as lost, join again, and fetch their offsets. A rebalance alone would not do: members commit their
        positions until they have joined, and cooperative ones keep their positions.
        """
        if classic_of(turn).state is State.STABLE:
            begin_generation_without_join(turn)
            prepare_rebalance(turn, because)

    def fire(self, turn: Turn, timer: Timer) -> None:
        """Carry out the effect of a timer."""
        expirations.fire(turn, timer)

    def load(self, turn: Turn) -> None:
        """Give the group its sessions, and the timer of its state."""
        expirations.load(turn)
