"""Stable again within a bound: soon after the last disturbance, every live client is a member that is answered.

A client that must join is assigned again, and heartbeats get answers that do not ask to send them again. A disturbance
is a fault, another client's first join or its leave, and the last event of another client that has gone. A client has
gone if it was stopped, or if nothing comes from it for the last part of the run.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.states import State
from tests.recovery.checker.history import Function, Kind
from tests.recovery.checker.operations import (
    NS_PER_MS,
    Operation,
    Rule,
    Violation,
    grouped,
    lines_of,
    reconciling_groups,
)

REJOINS = frozenset(
    {
        Error.REBALANCE_IN_PROGRESS,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.FENCED_MEMBER_EPOCH,
    }
)
"""The answers on which a member joins again."""

HEARTBEATS = (Function.HEARTBEAT, Function.CONSUMER_HEARTBEAT)

GONE_AFTER = 0.25
"""For how much of the bound a client must be silent at the end of a run to count as gone."""


def check_settling(
    operations: Sequence[Operation], states: Mapping[str, Group | None], bound_ms: int
) -> Iterator[Violation]:
    """Check every client of every group, and the state of the groups in which members converge one by one."""
    bound = bound_ms * NS_PER_MS
    end = max((_seen(operation) for operation in operations), default=0)
    faults = [(moment, "") for o in operations if o.f is Function.FAULT for moment in (o.called, _seen(o))]
    clients = grouped((o for o in operations if o.call.group), lambda o: (o.call.group, o.call.client))
    disturbances: dict[str, list[tuple[float, str]]] = defaultdict(lambda: list(faults))
    for (group, client), own in clients.items():
        disturbances[group] += [(moment, client) for moment in _disturbances(own, end - bound * GONE_AFTER)]
    for moments in disturbances.values():
        moments.sort()
    for group in sorted(reconciling_groups(operations) & states.keys()):
        state = states[group]
        rejoins = (_seen(o) for o in operations if o.call.group == group and _begins_to_join(o))
        calm_ns = end - max([*(moment for moment, _ in disturbances[group]), *rejoins], default=0)
        if state is not None and state.state not in (State.STABLE, State.EMPTY) and calm_ns > bound:
            what = f"it is {state.state.value} {calm_ns / NS_PER_MS / 1000:.1f} s after the last disturbance"
            yield Violation(Rule.STABLE_AGAIN, group, what)
    for (group, client), own in clients.items():
        for since, until, operation in (*_unsettled(own, end), *_unanswered(own)):
            before = disturbances[group][: bisect_right(disturbances[group], (until, ""))]
            latest = next((moment for moment, whose in reversed(before) if whose != client), since)
            waited = until - max(since, latest)
            if waited > bound:
                missing = (
                    "was not assigned again"
                    if operation.joins or operation.f not in HEARTBEATS
                    else "had no heartbeat answered"
                )
                what = f"{client} {missing} for {waited / NS_PER_MS / 1000:.1f} s"
                yield Violation(Rule.STABLE_AGAIN, group, what, lines_of(operation))


def _seen(operation: Operation) -> float:
    return operation.called if operation.end is None else operation.end.time


def _disturbances(own: Sequence[Operation], gone_before: float) -> Iterator[float]:
    """When a client disturbs the others of its group (ns). It has gone if its last event is before ``gone_before``."""
    first_join = next((operation for operation in own if operation.joins), None)
    for operation in own:
        # Only the first: clients whose joins nobody answers would excuse each other by repeating them.
        if operation.leaves or operation is first_join:
            yield from (operation.called, _seen(operation))
    if first_join is None:
        return
    last = max(_seen(operation) for operation in own)
    if last < gone_before or any(operation.f is Function.STOPPED for operation in own):
        yield last


def _awaits_answer(own: Sequence[Operation]) -> bool:
    """Whether the client waits at the end of the run: for an answer, or to ask again."""
    if any(o.f is Function.STOPPED for o in own):
        return False
    last = [o for o in own if o.joins or o.f is Function.SYNC][-1:]
    return any(o.end is None for o in own) or any(o.error.retriable for o in last)


def _unsettled(own: Sequence[Operation], end: float) -> Iterator[tuple[float, float, Operation]]:
    """The spans (ns) in which a client was to join and was not assigned, each with its first operation."""
    first: Operation | None = None
    since = inf
    settled_at = -inf
    moments = sorted([(o.called, o) for o in own if o.joins] + [(_seen(o), o) for o in own], key=lambda entry: entry[0])
    for moment, operation in moments:
        if first is None and operation.called >= settled_at and _unsettles(operation, moment):
            first, since = operation, moment
        elif _settles(operation):
            if first is not None:
                yield since, moment, first
            first, settled_at = None, moment
    if first is not None:
        yield since, end if _awaits_answer(own) else moments[-1][0], first


def _unanswered(own: Sequence[Operation]) -> Iterator[tuple[float, float, Operation]]:
    """The spans (ns) in which heartbeats were sent and none was answered, each with its first heartbeat."""
    first: Operation | None = None
    moments = sorted([(o.called, False, o) for o in own] + [(_seen(o), True, o) for o in own], key=lambda m: m[:2])
    for moment, is_end, operation in moments:
        if operation.f in HEARTBEATS and not is_end:
            first = first or operation
        elif first is not None and is_end and _shows_life(operation):
            yield first.called, moment, first
            first = None
    if first is not None:
        yield first.called, moments[-1][0], first


def _shows_life(operation: Operation) -> bool:
    """Whether a heartbeat was answered, or the client needs no answer any more."""
    if operation.f in HEARTBEATS:
        return operation.kind is not Kind.INFO and not operation.error.retriable
    return _settles(operation)


def _unsettles(operation: Operation, moment: float) -> bool:
    """Whether the client must join from this moment on. An answer to a request from before it was assigned is late."""
    if operation.joins and moment == operation.called:
        return True
    return operation.f in (Function.SYNC, *HEARTBEATS, Function.COMMIT) and operation.error in REJOINS


def _begins_to_join(operation: Operation) -> bool:
    """Whether a member joins, or learns that it must."""
    return operation.joins or (operation.error in REJOINS and operation.f is not Function.RESET)


def _settles(operation: Operation) -> bool:
    if operation.leaves or operation.f is Function.STOPPED:
        return True
    return operation.f in (Function.SYNC, Function.ASSIGNED, Function.CONSUMER_HEARTBEAT) and operation.is_ok
