"""The job's epoch in a checkpoint that a command puts in place: an epoch that goes back makes clients drop the answers.

The next job has a higher epoch than all starts of its checkpoint and all announced ones. Without the announcements, the
journal knows the highest epoch that was given.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from coordinator_logic.config import LOGIC_VERSION
from coordinator_logic.records import JournalEntry
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions


def newest_epoch_of(entries: Iterable[JournalEntry | None]) -> int:
    """The highest epoch of a job that has written an entry; 0 if none is known."""
    return max((entry.job_epoch for entry in entries if entry is not None), default=0)


class AnnouncedEpochs:
    """Leaves out journal entries with an epoch that no job has announced: they would void what the others tell.

    ``newest`` is the newest announced epoch; 0 if none is known, then nothing is left out.
    """

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self.left_out = 0
        """How many entries were left out."""

    def of(self, entries: Iterable[JournalEntry | None]) -> Iterator[JournalEntry]:
        """The entries that are believed, without what is no entry."""
        for entry in entries:
            if entry is None:
                continue
            if 0 < self._newest < entry.job_epoch:
                self.left_out += 1
            else:
                yield entry


def newest_epoch_in(checkpoint: Path, default: int = 0) -> int:
    """The highest epoch of a checkpoint's starts; ``default`` if it has none."""
    starts = (checkpoint / STARTS_FOLDER).glob("[!.]*")
    return max(map(_epoch_in, starts), default=default)


def start_with_epoch(options: JobOptions, topic: str, offsets: Mapping[int, int], batch_time: int, epoch: int) -> Start:
    """A start in place of the one with this epoch, whose record is lost.

    ``offsets`` are those after the last request that the checkpoint has read, by partition; ``batch_time`` is the time
    of the batch that has read it, ms since the epoch of Unix.
    """
    config = msgspec.structs.replace(
        options.protocol,
        requests_topic=topic,
        requests_partitions=len(offsets),
        job_epoch=epoch,
        logic_version=LOGIC_VERSION,
    )
    now = time.time_ns() // 1_000_000
    return Start(started_at=now, last_batch_time=batch_time, config=config, read_until=dict(offsets))


def write_start(checkpoint: Path, start: Start) -> None:
    """Write a start as a job does."""
    (checkpoint / STARTS_FOLDER).mkdir(exist_ok=True)
    (checkpoint / STARTS_FOLDER / str(start.started_at)).write_bytes(msgspec.json.encode(start))


def keep_epoch(checkpoint: Path, last: Start) -> None:
    """Write a start unless the checkpoint has one with its epoch or a higher one."""
    if newest_epoch_in(checkpoint, default=-1) < last.epoch:
        write_start(checkpoint, last)


def _epoch_in(path: Path) -> int:
    """The epoch in a file of a start; 0 for one of an earlier release, which is empty."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Start).epoch
    except msgspec.DecodeError:
        return 0
