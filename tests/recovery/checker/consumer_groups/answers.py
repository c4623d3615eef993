"""Journal and answers: what members of consumer groups were told, and in which epochs their commits were accepted."""

from collections.abc import Iterator, Sequence

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.consumer_groups.story import ConsumerStory, Standing
from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import Operation, Rule, Violation


def check_heartbeats(story: ConsumerStory, operations: Sequence[Operation]) -> Iterator[Violation]:
    """Check the answers to heartbeats against the journal, and in which epochs heartbeats were accepted.

    Only its own heartbeats change a member, and they are appended in the order in which it sends them. So the journal
    says how it stood after each of them.
    """
    standings: dict[str, Standing] = {}
    for operation in operations:
        member = operation.call.member
        if operation.f is not Function.CONSUMER_HEARTBEAT or operation.leaves:
            continue
        before = standings.get(member)
        if before is not None:
            yield from _check_epoch(before, operation)
        changed = story.standings_after.get(operation.call.correlation_id)
        if changed is not None:
            standings[member] = changed
        if operation.is_ok and (what := _differs(standings.get(member), operation)) is not None:
            yield Violation(Rule.JOURNAL_AND_ANSWERS, operation.call.group, what, operation.lines)


def _check_epoch(before: Standing, operation: Operation) -> Iterator[Violation]:
    call = operation.call
    owned = [position.key for position in call.value] if call.lists_partitions else None
    may_send = before.may_send(call.generation, owned)
    what = f"a heartbeat of {call.member} in epoch {call.generation}, when it was in {before.epoch},"
    if operation.is_ok and not may_send:
        yield Violation(Rule.GENERATIONS_GO_AHEAD, call.group, f"{what} was accepted", operation.lines)
    if operation.error is Error.FENCED_MEMBER_EPOCH and may_send:
        yield Violation(Rule.LIVE_MEMBERS_STAY, call.group, f"{what} was refused", operation.lines)


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
