"""Who owned what among the members of the consumer group protocol.

A member owns a partition from the answer that assigned it until it gives the partition up, sends a heartbeat whose list
lacks it, leaves, is stopped, or learns that it has been removed or fenced. As the project's client does, it ignores an
answer if it has sent a list since that heartbeat: what the answer assigns may have been given away because of the list.

It does not count as the owner for longer than its session after its last accepted heartbeat. A member that was removed
because it did not revoke in time may have been so after its rebalance timeout. That one counts from the last heartbeat
whose answer left nothing to revoke.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from coordinator_logic.errors import Error
from tests.recovery.checker.consumer_groups.story import ConsumerStory
from tests.recovery.checker.history import Function
from tests.recovery.checker.intervals import Interval, Owner
from tests.recovery.checker.operations import NS_PER_MS, Operation, Rule, Violation

LOST = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})


@dataclass(slots=True)
class _Member(Owner):
    """A member. ``listed``: the last line in which it said what it owns; answers to earlier heartbeats are ignored.

    ``is_late``: it was removed because it did not revoke in time.
    """

    listed: float = 0
    epoch: int = 0
    is_late: bool = False
    rebalance_ns: float = inf
    nothing_to_revoke: float = -inf

    @property
    def guaranteed_until(self) -> float:
        """Until when it keeps its partitions, ns."""
        until = self.last_contact + self.guaranteed_ns
        return min(until, self.nothing_to_revoke + self.rebalance_ns) if self.is_late else until

    def call(self, operation: Operation, moment: float) -> None:
        """Follow a heartbeat when it is sent."""
        call = operation.call
        self.guaranteed_ns = call.session_ms * NS_PER_MS or self.guaranteed_ns
        self.rebalance_ns = call.rebalance_ms * NS_PER_MS or self.rebalance_ns
        if operation.leaves:
            self.lose(moment)
        elif call.lists_partitions:
            listed = {position.key for position in call.value}
            self.give_up([key for key in self.owned if key not in listed], moment)
            self.listed = operation.line

    def answer(self, operation: Operation, moment: float) -> None:
        """Follow the answer to a heartbeat."""
        call, answer = operation.call, operation.answer
        if operation.is_ok and not operation.leaves:
            self.last_contact = max(self.last_contact, operation.called)
            assigned = [position.key for position in answer.value]
            if call.lists_partitions and {position.key for position in call.value} <= set(assigned):
                self.nothing_to_revoke = max(self.nothing_to_revoke, operation.called)
            if operation.line >= self.listed:
                self.epoch = answer.generation
                self.assign(assigned, operation)
        elif operation.error in LOST or (
            operation.error is Error.FENCED_MEMBER_EPOCH
            and call.generation == self.epoch
            and operation.line >= self.listed
        ):
            self.lose(moment)

    def lose(self, moment: float) -> None:
        """Own nothing, and ignore all answers until the next join."""
        self.give_up_all(moment)
        self.listed = inf


def intervals_of(operations: Sequence[Operation], story: ConsumerStory) -> list[Interval]:
    """The times in which each member of the consumer group protocol in a group owned partitions."""
    names = {o.call.member for o in operations if o.f is Function.CONSUMER_HEARTBEAT}
    members = {name: _Member(name, is_late=story.is_late(name)) for name in names}
    of_client: dict[str, set[str]] = defaultdict(set)
    for moment, _, operation in sorted(_moments(operations), key=lambda entry: entry[:2]):
        if operation.f is Function.STOPPED:
            for name in of_client[operation.call.client]:
                members[name].lose(moment)
            continue
        member = members.get(operation.call.member)
        if member is None:
            continue
        of_client[operation.call.client].add(member.member_id)
        if operation.f is Function.REVOKED:
            member.give_up(operation.keys, moment)
        elif operation.f is Function.CONSUMER_HEARTBEAT and moment == operation.called:
            member.call(operation, moment)
        elif operation.f is Function.CONSUMER_HEARTBEAT:
            member.answer(operation, moment)
        elif operation.f is Function.COMMIT and operation.error in LOST and operation.call.generation == member.epoch:
            member.lose(moment)
    for member in members.values():
        member.give_up_all(inf)
    return [interval for member in members.values() for interval in member.intervals]


def _moments(operations: Sequence[Operation]) -> Iterator[tuple[float, int, Operation]]:
    for operation in operations:
        if operation.f is Function.CONSUMER_HEARTBEAT:
            yield operation.called, operation.line, operation
        if operation.returned < inf:
            yield operation.returned, operation.end_line, operation


def check_refused_commits(
    group: str, operations: Sequence[Operation], intervals: Sequence[Interval]
) -> Iterator[Violation]:
    """Check that no commit was refused as stale whose member had its partitions in that epoch, and has them still."""
    for operation in operations:
        if operation.f is not Function.COMMIT or operation.error is not Error.STALE_MEMBER_EPOCH:
            continue
        owned = [i for i in intervals if i.member == operation.call.member and _covers(i, operation)]
        if {position.key for position in operation.call.value} <= {interval.key for interval in owned}:
            what = f"a commit of {operation.call.member} in epoch {operation.call.generation} was refused as stale"
            yield Violation(Rule.COMMITS_BY_EPOCH, group, what, operation.lines)


def _covers(interval: Interval, commit: Operation) -> bool:
    is_owned = interval.begin <= commit.called and commit.returned <= interval.end
    return is_owned and interval.generation <= commit.call.generation
