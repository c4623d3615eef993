"""Journal and answers: what members of consumer groups were told, and in which epochs their commits were accepted."""

from coordinator_logic.consumer_group.epochs import JOIN_EPOCH
from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.consumer_groups.story import ConsumerStory, Standing
from tests.recovery.checker.history import Function
from tests.recovery.checker.operations import Operation


def heartbeat_differs(story: ConsumerStory, operation: Operation) -> str | None:
    """What shows that the journal does not have the answer to a heartbeat that joins or stays; None if nothing does."""
    member, answer = operation.member, operation.answer
    if answer.generation <= JOIN_EPOCH:
        return f"{member} was told that it is in epoch {answer.generation}" if not operation.leaves else None
    if not story.had_epoch(member, answer.generation):
        return f"{member} was told that it is in epoch {answer.generation}, where the journal does not have it"
    assigned = frozenset(position.key for position in answer.value)
    if answer.lists_partitions and (answer.generation, assigned) not in story.told[member]:
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
    return f"a commit of {member} in epoch {epoch} was applied in {standing.epoch}: it did not have {refused} since then"
