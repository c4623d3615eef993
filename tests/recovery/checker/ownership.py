"""Partitions have one owner: no two members in one generation, and no two at a time across generations.

A member owns a partition from the answer to its SyncGroup (or from the note that it was assigned) until it gives the
partition up, leaves, is stopped, or learns that it is no longer a member. An eager member gives up everything when it
joins again or is answered REBALANCE_IN_PROGRESS. A cooperative member keeps its partitions then. No member counts as
the owner for longer than its session or its rebalance timeout after its last successful JoinGroup, SyncGroup or
Heartbeat: until then, the coordinator must not give its partitions away. A commit proves less: it is accepted during a
rebalance, too. Nor does a heartbeat of a member that was removed later because it did not join or sync in time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.consumer_groups.ownership import check_refused_commits, intervals_of
from tests.recovery.checker.consumer_groups.story import ConsumerStory
from tests.recovery.checker.generations import SEVERAL_LIVES, Incarnations
from tests.recovery.checker.history import Function, Key
from tests.recovery.checker.intervals import Owner, check_intervals, is_same_instance
from tests.recovery.checker.operations import (
    NS_PER_MS,
    Operation,
    Rule,
    Violation,
    grouped,
    lines_of,
    reconciling_groups,
)

ASSIGNING = (Function.SYNC, Function.ASSIGNED, Function.CONSUMER_HEARTBEAT)

LOST = frozenset({Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID})
"""The answers from which a member learns that it has lost its partitions."""

OF_GENERATION = frozenset({Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS})
"""The answers that say something about the generation of the request only."""

CONTACTS = (Function.SYNC, Function.HEARTBEAT)
LATE_CONTACTS = (Function.SYNC,)
"""What counts for a member that was removed from a consumer group because it did not join or sync in time."""

MEMBER_REQUESTS = (Function.JOIN, Function.SYNC, Function.HEARTBEAT, Function.COMMIT)


@dataclass(slots=True)
class _Member(Owner):
    """A classic member. ``is_late``: it was removed from a consumer group because it did not join or sync in time.

    ``may_come_back``: it is in a group that accepts a JoinGroup with the id of a member that it has expelled.
    """

    generation: int = NO_GENERATION
    is_cooperative: bool = False
    is_late: bool = False
    may_come_back: bool = False


def check_ownership(
    operations: Sequence[Operation], incarnations: Incarnations, story: ConsumerStory
) -> Iterator[Violation]:
    """Check who owned what, by group, and that members of consumer groups could commit what they owned."""
    for group, of_group in grouped((o for o in operations if o.call.group), lambda o: o.call.group).items():
        yield from _check_generations(group, of_group, incarnations)
        reconciling = intervals_of(of_group, story)
        classic = [i for member in _members(of_group, story) for i in member.intervals]
        yield from check_intervals(group, [*classic, *reconciling])
        yield from check_refused_commits(group, of_group, reconciling)


def _check_generations(group: str, operations: Sequence[Operation], incarnations: Incarnations) -> Iterator[Violation]:
    owners: dict[tuple[str, int, Key], Operation] = {}
    for operation in operations:
        generation = operation.answer.generation
        if operation.f not in ASSIGNING or not operation.is_ok or generation <= NO_GENERATION:
            continue
        life = incarnations.get(operation.member, "")
        if life == SEVERAL_LIVES:
            continue
        assigned = operation.answer.value if operation.f is Function.CONSUMER_HEARTBEAT else operation.positions
        for key in (position.key for position in assigned):
            other = owners.setdefault((life, generation, key), operation)
            if other.member != operation.member and not is_same_instance(other, operation):
                yield Violation(
                    Rule.ONE_OWNER,
                    group,
                    f"generation {generation} gives {key[0]}-{key[1]} to {other.member} and {operation.member}",
                    lines_of(other, operation),
                )


def _members(operations: Sequence[Operation], story: ConsumerStory) -> list[_Member]:
    """Every member with its intervals, from its operations in the order in which its client saw their ends."""
    reconciling = reconciling_groups(operations)
    operations = [operation for operation in operations if operation.f is not Function.CONSUMER_HEARTBEAT]
    members: dict[str, _Member] = {}
    of_client: dict[str, set[str]] = defaultdict(set)
    for moment, _, operation in sorted(_moments(operations), key=lambda entry: entry[:2]):
        if operation.f is Function.STOPPED:
            for member_id in of_client[operation.call.client]:
                members[member_id].give_up_all(moment)
            continue
        if not operation.member:
            continue
        name = operation.member
        if name not in members:
            members[name] = _Member(name, is_late=story.is_late(name), may_come_back=bool(reconciling))
        member = members[name]
        of_client[operation.call.client].add(name)
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
        if member.may_come_back and operation.called > member.guaranteed_until:
            member.give_up_all(moment)
        member.generation = operation.answer.generation
        member.guaranteed_ns = min(call.session_ms, call.rebalance_ms) * NS_PER_MS
        member.is_cooperative = call.is_cooperative
        member.last_contact = max(member.last_contact, operation.called)
    elif operation.is_ok and operation.f in (LATE_CONTACTS if member.is_late else CONTACTS):
        member.last_contact = max(member.last_contact, operation.called)
    if operation.f in (Function.SYNC, Function.ASSIGNED) and operation.is_ok:
        member.assign(operation.keys, operation)
