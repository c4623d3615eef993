"""The requests about offsets, which members and visitors send in the same way."""

from collections.abc import Callable
from typing import Any

from coordinator_logic.messages import (
    NO_GENERATION,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
)
from tests.recovery.checker.history import Function, Position
from tests.recovery.recorded.surroundings import GroupPlan

Complete = Callable[..., None]
"""Records that an operation has taken effect; called with the fields of the completion."""

OnAnswer = Callable[[Any, Complete], None]
Send = Callable[..., None]


def fetch(send: Send, plan: GroupPlan, wanted: set[int], on_answer: Callable[[list[Position]], None]) -> None:
    """Fetch the committed offsets of partitions."""

    def answered(fetched: OffsetFetchResponse, complete: Complete) -> None:
        (topic,) = fetched.topics
        value = [
            Position(plan.topic, p.partition_index, p.committed_offset, p.metadata or "") for p in topic.partitions
        ]
        complete(value=value)
        on_answer(value)

    body = OffsetFetchRequest(plan.group, [TopicToFetch(plan.topic, sorted(wanted))])
    send(Function.FETCH, body, answered, value=plan.positions_of(wanted), version=7)


def commit(
    send: Send,
    plan: GroupPlan,
    value: list[Position],
    generation: int = NO_GENERATION,
    member_id: str = "",
    instance: str | None = None,
    f: Function = Function.COMMIT,
) -> None:
    """Commit offsets, or reset them."""
    partitions = [PartitionToCommit(p.partition, p.offset, committed_metadata=p.metadata) for p in value]
    body = OffsetCommitRequest(plan.group, [TopicToCommit(plan.topic, partitions)], generation, member_id, instance)
    send(f, body, lambda _, complete: complete(), value=value)
