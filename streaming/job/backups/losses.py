"""What a restore can lose, said before it begins: requests that retention has deleted since the backup."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from streaming.contract.output.text import counted
from streaming.job.backups.topic_reach import PartitionReach
from streaming.job.topics.losses import range_lines, requests_in


class RestorePoint(NamedTuple):
    """What a backup has read of the requests: the offset after the last one by partition, and the time of its batch.

    The time is in ms since the epoch.
    """

    read: Mapping[int, int]
    time: int


class LossReport(NamedTuple):
    """Lines for the user, and whether something can be lost."""

    lines: list[str]
    is_lossless: bool


def restore_losses(
    topic: str,
    point: RestorePoint,
    requests: Mapping[int, PartitionReach],
    journal: Mapping[int, PartitionReach],
    *,
    is_another_topic: bool,
) -> LossReport:
    """Compare what a backup has read with what the topics still hold.

    ``is_another_topic``: whether the requests topic was deleted and created again since the backup.
    """
    if is_another_topic:
        line = (
            f"{topic} was deleted and created again since the backup: every request between is lost, and the job "
            "refuses a checkpoint of the former topic"
        )
        return LossReport([line, _journal_line(point, journal)], is_lossless=False)
    deleted = {
        partition: (read, reach.first)
        for partition, read in point.read.items()
        if (reach := requests.get(partition)) is not None and reach.first > read
    }
    cut = {
        partition: (reach.end, read)
        for partition, read in point.read.items()
        if (reach := requests.get(partition, PartitionReach(0, 0, None))).end < read
    }
    waiting = sum(reach.end - max(reach.first, point.read.get(each, 0)) for each, reach in requests.items())
    lines = []
    if deleted:
        lines.append(
            f"{topic} has lost {requests_in(deleted)} since the backup, to retention or a deletion "
            f"({', '.join(range_lines(deleted))}): their changes are missing after the restore"
        )
        lines += [
            f"partition {partition}: requests from {shown(point.time)}, the time of the backup's batch, until "
            f"{_until(requests[partition])} are lost"
            for partition in sorted(deleted)
        ]
        lines.append(_journal_line(point, journal))
    if cut:
        lines.append(
            f"{topic} no longer holds the last {requests_in(cut)} that the backup has read "
            f"({', '.join(range_lines(cut))}): an unclean election or a restored disk has cut it"
        )
    if not lines:
        lines.append(f"{topic} still has every request since the backup, of {shown(point.time)}")
    lines.append(f"{topic} has {counted(waiting, 'request')} after the backup, which the job reads after its start")
    return LossReport(lines, is_lossless=not deleted and not cut)


def _journal_line(point: RestorePoint, journal: Mapping[int, PartitionReach]) -> str:
    times = [reach.first_time for reach in journal.values() if reach.first > 0 and reach.first_time is not None]
    emptied = any(reach.first > 0 and reach.first_time is None for reach in journal.values())
    if not emptied and max(times, default=0) <= point.time:
        return "the journal goes back beyond the backup: checkpoint rebuild with --backup restores these changes"
    since = "it is empty" if emptied else f"it begins at {shown(max(times))}"
    return f"the journal is too short for these changes, too: {since}"


def shown(time: int) -> str:
    """A time in ms since the epoch, as text."""
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _until(reach: PartitionReach) -> str:
    return "now" if reach.first_time is None else shown(reach.first_time)
