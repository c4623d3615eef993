"""The configuration with which a group is taken through a batch."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.identity import NO_KEYS, IdentityKeys
from streaming.contract.rights.group_acls import GroupAcls
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.starts import NO_START, Start
from streaming.job.rows.records import DEFAULT_LIMITS, SizeLimits


@dataclass(frozen=True)
class Settings:
    """The operator's configuration. ``starts`` are the job's starts in order, the present one last.

    ``has_deadline_checks``: whether batches may leave requests unread, so that members are expelled only by
    :mod:`coordinator_logic.timing.deadline_checks`. ``is_replay``: whether requests that were read before are read
    again, at the time of then (:mod:`streaming.job.group_batch.replay`). ``journal_partitions`` and
    ``directory_partitions`` are those in which keys lie; 0: the producer chooses. ``acls`` are the rules about who may
    send what; None: everyone may send everything.
    """

    topics: TopicNames
    response_partitions: int
    config: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    starts: tuple[Start, ...] = ()
    limits: SizeLimits = DEFAULT_LIMITS
    has_deadline_checks: bool = False
    identity_keys: IdentityKeys = field(default=NO_KEYS, repr=False)
    is_replay: bool = False
    journal_partitions: int = 0
    directory_partitions: int = 0
    acls: GroupAcls | None = None

    @property
    def start(self) -> Start:
        """The start whose batches these settings are for."""
        return self.starts[-1] if self.starts else NO_START

    def at(self, batch_time: int) -> "Settings":
        """The settings of a batch (its time in ms since the epoch): those of the start that has planned it."""
        if self.start.open_batch_time != batch_time:
            return self
        epoch = self.start.open_batch_epoch
        return self.of(next((start for start in reversed(self.starts[:-1]) if start.epoch == epoch), NO_START))

    def of(self, start: Start) -> "Settings":
        """The settings of the batches of one of the starts."""
        settings = self._by_start.get(start.started_at)
        if settings is None:
            config = start.config or msgspec.structs.replace(self.config, job_epoch=0, logic_version=0)
            partitions = start.response_partitions or self.response_partitions
            earlier = [one for one in self.starts if one.started_at < start.started_at]
            keys = self.identity_keys if start.key_ids is None else self.identity_keys.only(start.key_ids)
            settings = replace(
                self,
                config=config,
                response_partitions=partitions,
                starts=(*earlier, start),
                identity_keys=keys,
                # If the start's file is lost, the present rules let nobody pass who may not.
                acls=self.acls if start.config is None else start.group_acls,
            )
            self._by_start[start.started_at] = settings
        return settings

    def started_at(self, batch_time: int) -> int:
        """The time of the last start that is not later than the batch, ms since the epoch; 0 if there is none."""
        for start in reversed(self.starts):
            if start.started_at <= batch_time:
                return start.started_at
        return 0

    @cached_property
    def _by_start(self) -> "dict[int, Settings]":
        return {}
