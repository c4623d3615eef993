"""The end of a group's batch: what is due fires, as far as deadline checks allow.

A check is a record that the job appends to the requests (:mod:`coordinator_logic.timing.deadline_checks`). It has the
same bytes for every group; its key is the group.
"""

from collections.abc import Sequence

from coordinator_logic.group import Group
from coordinator_logic.partitioning import partition_for
from coordinator_logic.step import StepResult, step
from coordinator_logic.timing import deadline_checks
from streaming.job.group_batch.settings import Settings
from streaming.job.rows.records import KafkaRecord, Row

DEADLINE_CHECK = b'{"api":"DeadlineCheck","version":0,"correlationId":"deadline-check","replyPartition":0,"body":null}'
"""The value of a check. It never changes: a check that another release has appended counts, too."""


def check_row(settings: Settings, group_id: str) -> Row:
    """A check for a group, to be appended to the partition of its requests."""
    partition = partition_for(group_id, settings.config.requests_partitions)
    return Row(settings.topics.requests, partition, group_id.encode(), DEADLINE_CHECK, None)


class LastSteps:
    """The steps of a group after the one with the requests of a batch.

    Args:
        settings: The configuration.
        group_id: The group.
        batch_time: The batch's time, ms since the epoch.
        started_at: The job's last start before the batch, ms since the epoch.
        records: The group's records in the batch, with the checks among them.
    """

    def __init__(
        self, settings: Settings, group_id: str, batch_time: int, started_at: int, records: Sequence[KafkaRecord]
    ) -> None:
        self._settings = settings
        self._group_id = group_id
        self._batch_time = batch_time
        self._started_at = started_at
        self._records = records

    def fire(self, result: StepResult) -> tuple[StepResult, Row | None]:
        """Fire what is due after the step with the requests, which has fired nothing after the last of them.

        Returns the results of all steps of the group in the batch, and a check if the group asks for one.
        """
        settings, group = self._settings, result.group
        if group is None:
            return result, None
        # A check in another partition says nothing about the partition of the group's requests.
        partition = partition_for(self._group_id, settings.config.requests_partitions)
        checks = [record for record in self._records if record.value == DEADLINE_CHECK]
        checked_at = [check.timestamp for check in checks if check.partition == partition]
        if checked_at:
            compares_clocks = not settings.is_replay
            deadline_checks.note_check(
                group, max(checked_at), self._batch_time, settings.config, compares_clocks=compares_clocks
            )
        result, asks = self._fire_what_is_due(result, reads_check=bool(checked_at))
        return result, check_row(settings, self._group_id) if asks else None

    def _fire_what_is_due(self, result: StepResult, *, reads_check: bool) -> tuple[StepResult, bool]:
        config, batch_time, started_at = self._settings.config, self._batch_time, self._started_at
        first_append = [record.timestamp for record in self._records if record.value != DEADLINE_CHECK][:1]
        fired_until = None
        while result.group is not None and result.wake_at is not None:
            group = result.group
            events = [*first_append, *(entry.timestamp for entry in result.journal[:1])]
            deadline_checks.renew_sessions_after_old_join(group, min(events, default=None), batch_time, config)
            until = deadline_checks.due_until(group, batch_time, started_at, config)
            if until is None or until == fired_until:
                asks, wake_at = deadline_checks.schedule_check(
                    group, batch_time, started_at, reads_check, result.wake_at
                )
                return result._replace(wake_at=wake_at), asks
            after, fired_until = self._step(group, until), until
            responses, journal = result.responses + after.responses, result.journal + after.journal
            # No timer commits an offset.
            result = StepResult(after.group, responses, journal, after.wake_at, result.moved_back)
        return result, False

    def _step(self, group: Group, read_until: int) -> StepResult:
        return step(
            self._group_id,
            group,
            [],
            self._batch_time,
            started_at=self._started_at,
            config=self._settings.config,
            read_until=read_until,
            compares_clocks=not self._settings.is_replay,
        )
