"""The starts of the job: what a group's batch depends on besides its records, kept with the checkpoint.

A batch belongs to the start that has planned it, also when it runs again after a later start with other options: so it
gives the same bytes.
"""

from collections.abc import Mapping, Sequence

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import Int32, JobEpoch, LogOffset, Time
from streaming.contract.rights.group_acls import GroupAcls


class Start(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A start of the job.

    started_at: ms since the epoch of Unix.
    last_batch_time: the time of the last batch that was planned before this start, ms since the epoch of Unix; 0
        without one.
    open_batch_time: the same, if that batch was not completed; else 0.
    open_batch_epoch: the epoch of the start that has planned it.
    release: the version of this package.
    config: the configuration, with the job's epoch; None if an earlier release has recorded the start.
    response_partitions: how many partitions the responses topic had; 0 as above.
    journal_partitions, directory_partitions: in how many partitions of the topic keys lie: those that it had when this
        was recorded first; 0 as above. A key keeps its partition when more are added, so a reader finds all of a group.
    read_until: the first request that no batch before this start has read: an offset by partition.
    replay_until: the first request that no earlier job has read, as far as this one knows: an offset by partition. It
        is ahead of ``read_until`` where the checkpoint is older than the last job that was active. In JSON it is
        ``livedUntil``, as in checkpoints and announcements of earlier releases.
    replay_until_time: the time of the last batch of that job, ms since the epoch of Unix; ``livedUntilTime`` in JSON.
    copied_epoch: the epoch of the last start whose batches the checkpoint has before this one replays.
    key_ids: the names of the keys with which signatures are checked, see :meth:`.IdentityKeys.ids`; None if an earlier
        release has recorded the start.
    group_acls: the rules about who may send what; None: everyone may send everything.
    """

    started_at: Time
    last_batch_time: Time = 0
    open_batch_time: Time = 0
    open_batch_epoch: JobEpoch = 0
    release: str = ""
    config: CoordinatorConfig | None = None
    response_partitions: int = 0
    journal_partitions: int = 0
    directory_partitions: int = 0
    read_until: dict[Int32, LogOffset] = {}
    replay_until: dict[Int32, LogOffset] = msgspec.field(default_factory=dict, name="livedUntil")
    replay_until_time: Time = msgspec.field(default=0, name="livedUntilTime")
    copied_epoch: JobEpoch = 0
    key_ids: list[str] | None = None
    group_acls: GroupAcls | None = None

    @property
    def epoch(self) -> int:
        """The job's epoch, 0 if it is not known."""
        return 0 if self.config is None else self.config.job_epoch

    @property
    def replays(self) -> bool:
        """Whether requests that an earlier job has read are read again."""
        return any(offset > self.read_until.get(partition, 0) for partition, offset in self.replay_until.items())

    def has_been_read_before(self, partition: int, offset: int) -> bool:
        """Whether an earlier job has read a request that this one reads."""
        return offset < self.replay_until.get(partition, 0)

    def first_new(self, partition: int) -> int:
        """The offset of the first request that this start's batches read for the first time."""
        return max(self.read_until.get(partition, 0), self.replay_until.get(partition, 0))


NO_START = Start(started_at=0)
"""Stands for the time before the first start."""


def start_that_read(starts: Sequence[Start], current: Start, partition: int, offset: int) -> Start:
    """The start whose batches have read a request for the first time, of those before ``current``."""
    earlier = (start for start in starts if start.epoch < current.epoch and start.first_new(partition) <= offset)
    return max(earlier, key=lambda start: start.epoch, default=NO_START)


def copied_epoch(known: Sequence[Start]) -> int:
    """The epoch of the last start whose batches a checkpoint with these starts has for every group.

    A start that was still replaying has not replayed those before it for every group.
    """
    if not known:
        return 0
    return known[-1].copied_epoch if known[-1].replays else known[-1].epoch


def later(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The later offset of each partition."""
    return {partition: max(one.get(partition, 0), other.get(partition, 0)) for partition in {*one, *other}}
