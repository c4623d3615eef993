"""A driven group, with the sequences of requests that many tests begin with."""

from collections.abc import Sequence
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.states import State
from tests.logic.driver.answers import Joined, assignment_of, joined
from tests.logic.driver.requests import RequestedGroup
from tests.logic.driver.stepped_group import DELAY_MS, SESSION_MS
from tests.support.parts import classic_or_empty


class Driven(RequestedGroup):
    """One group, driven by hand through requests and time."""

    def sleep_with_heartbeats(self, ms: int, *members: Joined) -> None:
        """Let time pass while the members heartbeat within their sessions, whatever they are answered."""
        end = self.now + ms
        while self.now < end:
            self.sleep(min(SESSION_MS // 2, end - self.now))
            for member in members:
                self.heartbeat(member)

    def join_with_members(self, count: int, *, static: int = 0, **request: Any) -> list[Joined]:
        """Let new members form a generation, without syncing; the first ``static`` are static, the first leads."""
        answers = [
            self.join(instance=f"instance-{i}", client=f"client-{i}", **request)
            if i < static
            else self.join_new(f"client-{i}", **request)
            for i in range(count)
        ]
        for _ in range(10):
            if not any(answer.parked for answer in answers):
                break
            self.sleep(DELAY_MS)
        members = [joined(answer) for answer in answers]
        assert self.state() is State.COMPLETING_REBALANCE
        assert [member.leads for member in members] == [True] + [False] * (count - 1)
        return members

    def sync_all(self, members: Sequence[Joined]) -> None:
        """Let the members sync, followers first; each gets the assignment of :func:`assignment_of`."""
        followers_first = sorted(members, key=lambda member: member.leads)
        assignments = {member.member_id: assignment_of(member.member_id) for member in members}
        name = classic_or_empty(self.group).protocol_name
        protocol_type = self.group.part.protocol_type
        answers = [
            self.sync(member, assignments if member.leads else None, protocol_name=name, protocol_type=protocol_type)
            for member in followers_first
        ]
        for member, answer in zip(followers_first, answers, strict=True):
            assert answer.error is Error.NONE, answer.error
            assert answer.body.assignment == assignment_of(member.member_id)
        assert self.state() is State.STABLE

    def stable_group(self, members: int = 1, *, static: int = 0, **request: Any) -> list[Joined]:
        """Drive the group to Stable with new members; the first one leads."""
        joined_members = self.join_with_members(members, static=static, **request)
        self.sync_all(joined_members)
        return joined_members

    def empty_group(self) -> None:
        """Drive the group to Empty by letting its only member leave, in its second generation."""
        (member,) = self.stable_group(1)
        assert self.leave(member).error is Error.NONE
        assert self.state() is State.EMPTY
