"""Journal and answers: what members of consumer groups were told, and in which epochs their commits were accepted."""

from collections.abc import Iterator, Sequence

from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.consumer_groups.story import ConsumerStory, Standing
from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import Operation


def differing_heartbeats(story: ConsumerStory, operations: Sequence[Operation]) -> Iterator[tuple[Operation, str]]:
    """The heartbeats whose answers the journal does not have, each with what shows it.

    Only its own heartbeats change a member, and they are appended in the order in which it sends them. So the journal
    says how it stood after each of them.
    """
    standings: dict[str, Standing] = {}
    for operation in operations:
        member = operation.call.member
        if operation.f is not Function.CONSUMER_HEARTBEAT or operation.leaves:
            continue
        changed = story.standings_after.get(operation.call.correlation_id)
        if changed is not None:
            standings[member] = changed
        if operation.is_ok and (what := _differs(standings.get(member), operation)) is not None:
            yield operation, what


def _differs(standing: Standing | None, operation: Operation) -> str | None:
    member, answer = operation.member, operation.answer
    if standing is None or standing.epoch != answer.generation:
        return f"{member} was told that it is in epoch {answer.generation}, where the journal does not have it"
    if answer.lists_partitions and standing.assigned.keys() != {position.key for position in answer.value}:
        return f"{member} got another assignment in epoch {answer.generation} than the journal has"
    return None


def has_told(story: ConsumerStory, operation: Operation) -> bool:
    """Whether a classic member in a consumer group was told what the journal has."""
    member, answer = operation.member, operation.answer
    if operation.f is Function.JOIN:
        return story.had_epoch(member, answer.generation)
    assigned = frozenset(position.key for position in answer.value)
    return (answer.generation, assigned) in story.told.get(member, ())


def stale_commit(standing: Standing | None, operation: Operation) -> str | None:
    """What is wrong with the epoch of a commit that was applied in a consumer group."""
    epoch, member = operation.call.generation, operation.call.member
    if epoch == NO_GENERATION:
        return None if standing is None else "a commit without an epoch was applied as a member's"
    if standing is None:
        return f"a commit of {member} was applied when it was no member"
    refused = [key for key in operation.keys if not standing.may_commit(epoch, key)]
    if not refused:
        return None
    return f"a commit of {member} in epoch {epoch} was applied in {standing.epoch}, without {refused} since then"
