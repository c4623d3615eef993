"""The states that one group has been in, from the journal's last minutes.

A classic group records each change of its state. A consumer group (KIP-848) does not: its state follows from its epochs
and its members. The journal's last minutes do not name every member, so the end of a rebalance is the last step with
which a member reached the target. The directory says whether others have yet to reach it.
"""

from collections import deque
from typing import NamedTuple

from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import ClassicGroupFormed, StateChanged
from coordinator_logic.groups.consumer.epochs import STATIC_LEAVE_EPOCH
from coordinator_logic.groups.consumer.members import MemberState
from coordinator_logic.groups.consumer.records import (
    ConsumerGroupFormed,
    ConsumerMemberChanged,
    GroupEpochBumped,
    MemberAssignmentChanged,
    TargetAssignmentChanged,
)
from coordinator_logic.records import MemberRemoved, StaticMemberReplaced
from coordinator_logic.states import State

BEGINS_REBALANCE = frozenset({State.PREPARING_REBALANCE.value, State.ASSIGNING.value})

_STABLE, _EMPTY = State.STABLE.value, State.EMPTY.value
_ASSIGNING, _RECONCILING = State.ASSIGNING.value, State.RECONCILING.value


class Transition(NamedTuple):
    """A change of state; ``at`` is ms since the epoch."""

    at: int
    from_state: str
    to_state: str


class Transitions:
    """The transitions of one group in a window of time."""

    def __init__(self) -> None:
        self._all: deque[Transition] = deque()
        self._members: set[str] = set()
        """The members of a consumer group that were heard of."""
        self._first_epoch: int | None = None
        """The epoch with which the group became a consumer group: a record repeats it."""

    def note(self, record: Record, at: int) -> None:
        """Note a record of this time (ms since the epoch); other records than those of states change nothing."""
        self._note_members(record)
        match record:
            case StateChanged():
                self._all.append(Transition(at, record.from_state, record.to_state))
            case ConsumerGroupFormed(epoch=epoch):
                self._first_epoch = epoch
            case ClassicGroupFormed(state=state):
                self._change(at, state)
            case GroupEpochBumped(epoch=epoch) if epoch != self._first_epoch:
                self._change(at, _ASSIGNING if self._members else _EMPTY)
            case TargetAssignmentChanged(assignor=str()):
                self._note_target(at)
            case MemberAssignmentChanged():
                self._note_step(record, at)

    def _note_members(self, record: Record) -> None:
        match record:
            case ConsumerMemberChanged(member_id=member_id) | MemberAssignmentChanged(member_id=member_id):
                self._members.add(member_id)
            case MemberRemoved(member_id=member_id) | StaticMemberReplaced(old_member_id=member_id):
                self._members.discard(member_id)
            case ClassicGroupFormed():
                self._members.clear()

    def _note_target(self, at: int) -> None:
        if self._all and self._all[-1].to_state == _EMPTY:
            # There are members of whom the window's records had not told.
            self._all[-1] = self._all[-1]._replace(to_state=_ASSIGNING)
        self._change(at, _RECONCILING)

    def _note_step(self, record: MemberAssignmentChanged, at: int) -> None:
        """Note a member's step: after one to the target, the group is Stable as far as is known."""
        last = self._all[-1] if self._all else None
        if record.epoch == STATIC_LEAVE_EPOCH:
            self._change(at, _RECONCILING)
            return
        if last is None or _RECONCILING not in (last.to_state, last.from_state):
            return
        is_stable = record.state == MemberState.STABLE.value
        if last.to_state == _STABLE:
            self._all.pop()
            if is_stable:
                self._all.append(last._replace(at=at))
        elif last.to_state == _RECONCILING and is_stable:
            self._change(at, _STABLE)

    def _change(self, at: int, state: str) -> None:
        before = self._all[-1].to_state if self._all else _STABLE
        if state != before:
            self._all.append(Transition(at, before, state))

    def forget_before(self, time: int) -> None:
        """Forget what happened before a time (ms since the epoch)."""
        while self._all and self._all[0].at < time:
            self._all.popleft()

    def up_to(self, state_now: str) -> list[Transition]:
        """The transitions, oldest first, of a group that is in this state now."""
        known = list(self._all)
        if state_now == _RECONCILING and known and known[-1].to_state == _STABLE:
            # Another member has yet to reach the target.
            known.pop()
        return known
