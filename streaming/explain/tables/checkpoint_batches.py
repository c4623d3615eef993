"""Which batch of a checkpoint shows the groups as of a time, while Spark keeps it."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.errors import CannotRun
from streaming.job.group_batch.starts import Start
from streaming.job.spark_internals.checkpoint_layout.start_check import UnreadableFile
from streaming.job.spark_internals.offset_log import BatchPlan, UnreadablePlan, read_batch_plan
from streaming.job.state_stores import StateStore, store_of


class CompleteBatch(NamedTuple):
    """A complete batch of a checkpoint.

    ``time`` is ms since the epoch, ``read`` the offset after the last request that it has read, by partition; ``epoch``
    is that of the job that has run it, 0 if it is not known.
    """

    number: int
    time: int
    read: dict[int, int]
    epoch: int
    store: StateStore


def batch_at(
    numbers: Iterable[int],
    plan_text: Callable[[int], str],
    starts: Sequence[Start],
    topic: str,
    time: int | None,
) -> CompleteBatch | None:
    """The newest complete batch in which no change is later than ``time`` (ms since the epoch, None: now).

    A request may count as later than its batch by ``expiry.allowance.ms``. Spark deletes old batches meanwhile, so one
    whose plan is gone ends the search.

    Args:
        numbers: The complete batches.
        plan_text: Reads the plan of a batch; raises UnreadableFile.
        starts: The job's starts, oldest first.
        topic: The requests topic.
        time: The time; None for the newest batch.

    Returns:
        None if there is no batch that old.

    Raises:
        CannotRun: the checkpoint is that of another topic, or has another state store than the job's.
    """
    configs = [start.config for start in starts if start.config is not None] or [CoordinatorConfig()]
    latest = None if time is None else time - max(config.expiry_allowance_ms for config in configs)
    for number in sorted(numbers, reverse=True):
        try:
            plan = read_batch_plan(plan_text(number))
        except (UnreadablePlan, UnreadableFile):
            return None
        if latest is None or plan.time <= latest:
            return _complete_batch(number, plan, starts, topic)
    return None


def _complete_batch(number: int, plan: BatchPlan, starts: Sequence[Start], topic: str) -> CompleteBatch:
    read, store = plan.offsets_of(topic, "the checkpoint"), store_of(plan.state_store_class)
    if store is None:
        raise CannotRun("the checkpoint was made with a state store that this job does not use")
    epoch = max((start.epoch for start in starts if start.started_at <= plan.time), default=0)
    return CompleteBatch(number, plan.time, read, epoch, store)
