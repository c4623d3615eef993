"""Partitions have one owner: no two members in one generation, and no two at a time across generations.

A member owns a partition from the answer to its SyncGroup (or from the note that it was assigned) until it gives the
partition up, leaves, is stopped, or learns that it is no longer a member. An eager member gives up everything when it
joins again or is answered REBALANCE_IN_PROGRESS. A cooperative member keeps its partitions then. No member counts as
the owner for longer than its session or its rebalance timeout after its last successful JoinGroup, SyncGroup or
Heartbeat: until then, the coordinator must not give its partitions away. A commit proves less: it is accepted during a
rebalance, too.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.generations import Incarnations
from tests.recovery.checker.history import Function, Key
from tests.recovery.checker.operations import NS_PER_MS, Operation, Rule, Violation, grouped, lines_of

LOST = frozenset({Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID})
"""The answers from which a member learns that it has lost its partitions."""

OF_GENERATION = frozenset({Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS})
"""The answers that say something about the generation of the request only."""

MEMBER_REQUESTS = (Function.JOIN, Function.SYNC, Function.HEARTBEAT, Function.COMMIT)


@dataclass(slots=True)
class _Interval:
    """That a member owned a partition, from ``begin`` to ``end`` (ns)."""

    key: Key
    member: str
    begin: float
    assigned_by: Operation
    end: float = inf


@dataclass(slots=True)
class _Member:
    """A member while its operations are gone through in the order in which it sees them."""

    member_id: str
    generation: int = NO_GENERATION
    guaranteed_ns: float = inf
    is_cooperative: bool = False
    last_contact: float = -inf
    owned: dict[Key, _Interval] = field(default_factory=dict)
    intervals: list[_Interval] = field(default_factory=list)

    def assign(self, operation: Operation) -> None:
        """Own these partitions from now on, besides those that a cooperative member has not given up yet."""
        begin = operation.answer.time
        for key in operation.keys:
            if key not in self.owned:
                self.owned[key] = _Interval(key, self.member_id, begin, operation)
                self.intervals.append(self.owned[key])

    def give_up(self, keys: Sequence[Key], at: float) -> None:
        """Own these partitions no longer."""
        for key in keys:
            interval = self.owned.pop(key, None)
            if interval is not None:
                interval.end = min(at, self.last_contact + self.guaranteed_ns)

    def give_up_all(self, at: float) -> None:
        """Own nothing."""
        self.give_up(list(self.owned), at)


def check_ownership(operations: Sequence[Operation], incarnations: Incarnations) -> Iterator[Violation]:
    """Check who owned what, by group."""
    for group, of_group in grouped((o for o in operations if o.call.group), lambda o: o.call.group).items():
        yield from _check_generations(group, of_group, incarnations)
        yield from _check_intervals(group, [i for member in _members(of_group) for i in member.intervals])


def _check_generations(group: str, operations: Sequence[Operation], incarnations: Incarnations) -> Iterator[Violation]:
    owners: dict[tuple[str, int, Key], Operation] = {}
    for operation in operations:
        generation = operation.answer.generation
        if operation.f not in (Function.SYNC, Function.ASSIGNED) or not operation.is_ok or generation == NO_GENERATION:
            continue
        for key in operation.keys:
            other = owners.setdefault((incarnations.get(operation.member, ""), generation, key), operation)
            if other.member != operation.member and not _same_instance(other, operation):
                yield Violation(
                    Rule.ONE_OWNER,
                    group,
                    f"generation {generation} gives {key[0]}-{key[1]} to {other.member} and {operation.member}",
                    lines_of(other, operation),
                )


def _same_instance(one: Operation, other: Operation) -> bool:
    return one.call.instance is not None and one.call.instance == other.call.instance


def _members(operations: Sequence[Operation]) -> list[_Member]:
    """Every member with its intervals, from its operations in the order in which its client saw their ends."""
    members: dict[str, _Member] = {}
    of_client: dict[str, set[str]] = defaultdict(set)
    for moment, _, operation in sorted(_moments(operations), key=lambda entry: entry[:2]):
        if operation.f is Function.STOPPED:
            for member_id in of_client[operation.call.client]:
                members[member_id].give_up_all(moment)
            continue
        if not operation.member:
            continue
        member = members.setdefault(operation.member, _Member(operation.member))
        of_client[operation.call.client].add(operation.member)
        _follow(member, operation, moment, is_call=moment == operation.called)
    for member in members.values():
        member.give_up_all(inf)
    return list(members.values())


def _moments(operations: Sequence[Operation]) -> Iterator[tuple[float, int, Operation]]:
    """When a client does or learns something: a leaving or joining member at the call, the others at the answer."""
    for operation in operations:
        if operation.f in (Function.LEAVE, Function.JOIN):
            yield operation.called, operation.line, operation
        if operation.f is not Function.LEAVE and operation.returned < inf:
            yield operation.returned, operation.end_line, operation


def _follow(member: _Member, operation: Operation, moment: float, *, is_call: bool) -> None:
    if is_call and operation.f is Function.JOIN:
        if not operation.call.is_cooperative:
            member.give_up_all(moment)
        return
    is_late = operation.f is not Function.JOIN and operation.call.generation < member.generation
    if operation.f in MEMBER_REQUESTS and operation.error in OF_GENERATION and is_late:
        # It answers a request from before the member joined again.
        return
    if operation.f is Function.LEAVE or (operation.f in MEMBER_REQUESTS and operation.error in LOST):
        member.give_up_all(moment)
    elif operation.f in MEMBER_REQUESTS and operation.error is Error.REBALANCE_IN_PROGRESS:
        if not member.is_cooperative:
            member.give_up_all(moment)
    elif operation.f is Function.REVOKED:
        member.give_up(operation.keys, moment)
    elif operation.f is Function.JOIN and operation.is_ok:
        call = operation.call
        member.generation = operation.answer.generation
        member.guaranteed_ns = min(call.session_ms, call.rebalance_ms) * NS_PER_MS
        member.is_cooperative = call.is_cooperative
        member.last_contact = max(member.last_contact, operation.called)
    elif operation.f in (Function.SYNC, Function.HEARTBEAT) and operation.is_ok:
        member.last_contact = max(member.last_contact, operation.called)
    if operation.f in (Function.SYNC, Function.ASSIGNED) and operation.is_ok:
        member.assign(operation)


def _is_same_owner(one: _Interval, other: _Interval) -> bool:
    return one.member == other.member or _same_instance(one.assigned_by, other.assigned_by)


def _check_intervals(group: str, intervals: Sequence[_Interval]) -> Iterator[Violation]:
    for (topic, partition), of_partition in grouped(intervals, lambda interval: interval.key).items():
        furthest: _Interval | None = None
        for interval in sorted(of_partition, key=lambda entry: entry.begin):
            if interval.end <= interval.begin:
                continue
            if furthest is not None and interval.begin < furthest.end and not _is_same_owner(furthest, interval):
                yield Violation(
                    Rule.ONE_OWNER,
                    group,
                    f"{interval.member} got {topic}-{partition} while {furthest.member} owned it",
                    lines_of(furthest.assigned_by, interval.assigned_by),
                )
            if furthest is None or interval.end > furthest.end:
                furthest = interval
