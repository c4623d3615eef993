"""Generations: they never go back, and everybody in a generation is told the same."""

from collections.abc import Iterator, Mapping, Sequence

from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import Operation, Rule, Violation, grouped, lines_of, reconciling_groups

WITH_GENERATION = (Function.JOIN, Function.SYNC, Function.HEARTBEAT, Function.CONSUMER_HEARTBEAT, Function.COMMIT)

Incarnations = Mapping[str, str]
"""The life of a member's group, by member id: a group that is created again begins with generation 1, and so does an
empty one that changes its type."""

SEVERAL_LIVES = "several lives"
"""The life of a member that has come back, with its id, to another life of its group. Its operations do not say to
which one they belong; they are left to the rules of the journal."""


def check_generations(
    operations: Sequence[Operation], incarnations: Incarnations, replaced: Mapping[str, str]
) -> Iterator[Violation]:
    """Check the successful requests of members.

    ``replaced``: by the member id that a static member has now, the one that it had before.
    """
    accepted = (o for o in operations if o.f in WITH_GENERATION and o.is_ok and o.answer.generation != NO_GENERATION)
    reconciling = reconciling_groups(operations)
    lives = grouped(accepted, lambda o: (o.call.group, incarnations.get(o.member, "")))
    for (group, life), of_life in lives.items():
        if life == SEVERAL_LIVES:
            continue
        if group in reconciling:
            yield from _check_epochs(group, of_life)
        else:
            yield from _check_order(group, of_life)
        # Nobody leads a consumer group, in which each member joins alone.
        joins = [o for o in of_life if o.f is Function.JOIN and o.answer.leader]
        for of_generation in grouped(joins, lambda o: o.answer.generation).values():
            yield from _check_joins(group, of_generation, replaced)
        syncs = [o for o in of_life if o.f is Function.SYNC and group not in reconciling]
        for of_member in grouped(syncs, lambda o: (o.answer.generation, o.member)).values():
            yield from _check_syncs(group, of_member)


def _check_epochs(group: str, operations: Sequence[Operation]) -> Iterator[Violation]:
    """Members of a consumer group are in different epochs at a time, and may commit in an earlier one of theirs."""
    current = [o for o in operations if o.f is not Function.COMMIT and o.answer.generation > NO_GENERATION]
    for of_member in grouped(current, lambda o: o.member).values():
        yield from _check_order(group, of_member)


def _check_order(group: str, operations: Sequence[Operation]) -> Iterator[Violation]:
    """A request that is accepted in a generation was so at some time between its call and its answer."""
    by_return = sorted(operations, key=lambda operation: operation.returned)
    newest: Operation | None = None
    ended = 0
    for operation in operations:
        while by_return[ended].returned < operation.called:
            if newest is None or by_return[ended].answer.generation > newest.answer.generation:
                newest = by_return[ended]
            ended += 1
        if newest is not None and operation.answer.generation < newest.answer.generation:
            what = (
                f"{operation.f} of {operation.member} was accepted in generation {operation.answer.generation} "
                f"after generation {newest.answer.generation} had begun"
            )
            yield Violation(Rule.GENERATIONS_GO_AHEAD, group, what, lines_of(newest, operation))
            return


def _check_joins(group: str, joins: Sequence[Operation], replaced: Mapping[str, str]) -> Iterator[Violation]:
    first = joins[0]
    for join in joins[1:]:
        generation = f"generation {join.answer.generation}"
        if join.answer.protocol != first.answer.protocol:
            what = f"{generation} has the protocols {first.answer.protocol!r} and {join.answer.protocol!r}"
            yield Violation(Rule.ONE_GENERATION, group, what, lines_of(first, join))
        if _original(join.answer.leader, replaced) != _original(first.answer.leader, replaced):
            what = f"{generation} has the leaders {first.answer.leader} and {join.answer.leader}"
            yield Violation(Rule.ONE_GENERATION, group, what, lines_of(first, join))


def _original(member: str, replaced: Mapping[str, str]) -> str:
    """The first member id of a static member."""
    while member in replaced:
        member = replaced[member]
    return member


def _check_syncs(group: str, syncs: Sequence[Operation]) -> Iterator[Violation]:
    first = syncs[0]
    for sync in syncs[1:]:
        if set(sync.answer.value) != set(first.answer.value):
            what = f"{sync.member} got two assignments in generation {sync.answer.generation}"
            yield Violation(Rule.ONE_GENERATION, group, what, lines_of(first, sync))
