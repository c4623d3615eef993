"""The configuration with which a group is taken through a batch."""

from bisect import bisect_right
from dataclasses import dataclass, field

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import TopicNames
from streaming.job.rows import DEFAULT_LIMITS, Limits


@dataclass(frozen=True)
class Settings:
    """The operator's configuration. ``starts`` are the job's starts in ascending order, ms since the epoch.

    ``has_deadline_checks``: whether batches may leave requests unread, so that members are expelled only by
    :mod:`coordinator_logic.timing.deadline_checks`.
    """

    topics: TopicNames
    response_partitions: int
    config: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    starts: tuple[int, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    has_deadline_checks: bool = False
    identity_keys: tuple[bytes, ...] = field(default=(), repr=False)

    def started_at(self, batch_time: int) -> int:
        """The last start that is not later than the batch; 0 if there is none."""
        index = bisect_right(self.starts, batch_time)
        return self.starts[index - 1] if index else 0
