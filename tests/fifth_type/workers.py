"""Groups of workers: the type, all of it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from coordinator_logic import apis
from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group.part import Commit, GroupPart
from coordinator_logic.group.record import Record
from coordinator_logic.group.timer import HEARTBEAT, Timer
from coordinator_logic.groups.group_type import Answer, Formation, GroupType
from coordinator_logic.handler import Handler
from coordinator_logic.messages import DescribedGroup, DescribedMember, DescribeGroupsRequest, DescribeGroupsResponse
from coordinator_logic.messages.base import Int16, Message
from coordinator_logic.records import MemberRemoved
from coordinator_logic.states import IllegalState, State
from coordinator_logic.turn import Turn

SESSION_MS = 6_000
PROTOCOL_TYPE = "work"


class WorkerHeartbeatRequest(Message, frozen=True):
    """A worker joins or stays, or leaves."""

    group_id: str
    member_id: str
    leaves: bool = False
    session_timeout_ms: int = SESSION_MS


class WorkerHeartbeatResponse(Message, frozen=True):
    """The number of workers."""

    error_code: Int16 = 0
    workers: int = 0


class WorkerGroupFormed(Record, frozen=True):
    """The group is one of workers from now on."""

    changes_retention: ClassVar[bool] = True


class WorkerAdded(Record, frozen=True):
    """A worker joined."""

    changes_retention: ClassVar[bool] = True

    member_id: str


class WorkerGroup(GroupPart, array_like=True, dict=True, tag="worker"):
    """The workers, in the order in which they joined."""

    type_name: ClassVar[str] = "worker"
    records: ClassVar[tuple[type[Record], ...]] = (WorkerAdded,)

    workers: list[str] = []  # noqa: RUF012 - msgspec copies it

    @property
    def member_ids(self) -> Collection[str]:
        """The ids of the workers."""
        return self.workers

    def is_subscribed_to(self, topic: str) -> bool:
        """No worker subscribes to a topic."""
        return False

    def apply(self, group_id: str, record: Record, timestamp: int) -> None:
        """Apply a record."""
        match record:
            case WorkerAdded():
                self.workers.append(record.member_id)
            case MemberRemoved():
                self.workers.remove(record.member_id)
            case _:
                raise IllegalState(f"{group_id!r} is a group of workers, which has no {type(record).__name__}")
        self.generation += 1
        self.enter(State.STABLE if self.workers else State.EMPTY, timestamp)

    def check_commit(self, commit: Commit) -> Error:
        """A worker may commit, and anybody while there is none."""
        return Error.NONE if commit.member_id in self.workers or not self.workers else Error.UNKNOWN_MEMBER_ID


def _form(before: GroupPart, record: WorkerGroupFormed, timestamp: int) -> WorkerGroup:
    return WorkerGroup(before.state, before.previous_state, before.state_timestamp, protocol_type=PROTOCOL_TYPE)


def _workers(turn: Turn) -> WorkerGroup | None:
    part = None if turn.existing is None else turn.existing.part
    return part if isinstance(part, WorkerGroup) else None


def _remove(turn: Turn, member_id: str, reason: str) -> None:
    turn.cancel_heartbeat(member_id)
    turn.record(MemberRemoved(member_id, None, reason))


def _heartbeat(turn: Turn, request: Request, body: WorkerHeartbeatRequest) -> None:
    if turn.existing is None:
        turn.create_group()
    group = _workers(turn)
    if group is None and turn.group.state is State.EMPTY:
        turn.record(WorkerGroupFormed())
        group = _workers(turn)
    if group is None:
        turn.reply(request.address, WorkerHeartbeatResponse(Error.INCONSISTENT_GROUP_PROTOCOL))
        return
    if body.leaves and body.member_id in group.workers:
        _remove(turn, body.member_id, "left")
    elif not body.leaves:
        if body.member_id not in group.workers:
            turn.record(WorkerAdded(body.member_id))
        turn.arm_heartbeat(body.member_id, body.session_timeout_ms)
    turn.reply(request.address, WorkerHeartbeatResponse(workers=len(group.workers)))


def _refuse(body: WorkerHeartbeatRequest, version: int, error: Error) -> WorkerHeartbeatResponse:
    return WorkerHeartbeatResponse(error)


def _describe(turn: Turn, request: Request, body: DescribeGroupsRequest) -> bool:
    group = turn.group.part
    members = [DescribedMember(member_id, None, "", "", b"", b"") for member_id in group.member_ids]
    described = DescribedGroup(turn.group_id, 0, None, group.state.value, PROTOCOL_TYPE, "", members)
    turn.reply(request.address, DescribeGroupsResponse([described]))
    return True


WORKER_HEARTBEAT = Api("WorkerHeartbeat", None, range(1), WorkerHeartbeatRequest, WorkerHeartbeatResponse, {})


class WorkerType(GroupType):
    """What a group of workers does in a turn."""

    part: ClassVar[type[GroupPart]] = WorkerGroup
    formation: ClassVar[Formation | None] = Formation(WorkerGroupFormed, _form)
    handlers: ClassVar[Sequence[tuple[Api[Any, Any], Handler]]] = ((WORKER_HEARTBEAT, Handler(_heartbeat, _refuse)),)
    answers: ClassVar[Mapping[str, Answer]] = {apis.DESCRIBE_GROUPS.name: _describe}

    def restart_members(self, turn: Turn, because: str) -> None:
        """Remove the workers: they join again."""
        for member_id in list(turn.group.part.member_ids):
            _remove(turn, member_id, because)

    def fire(self, turn: Turn, timer: Timer) -> None:
        """Remove a worker whose session has timed out."""
        if timer.kind == HEARTBEAT and timer.member_id in turn.group.part.member_ids:
            _remove(turn, timer.member_id, "its session timed out")

    def load(self, turn: Turn) -> None:
        """Give every worker a full session."""
        for member_id in turn.group.part.member_ids:
            turn.arm_heartbeat(member_id, SESSION_MS)
