"""Rebuild a checkpoint from the journal, or from a backup and the journal after it."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession

from streaming.client.directory import read_directory
from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.backups.checkpoint_writing import (
    Content,
    complete_batch,
    copy_own_files,
    local_session,
    read_groups,
    store_in,
    write_checkpoint,
)
from streaming.job.backups.epochs import AnnouncedEpochs, keep_epoch, newest_epoch_in, start_with_epoch, write_start
from streaming.job.backups.last_job import LastJob, find_last_job
from streaming.job.backups.manifest import CHECKPOINT, Manifest
from streaming.job.backups.placement import Report, locked_place, place, require_free, unfinished_folder, writing
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroups, Resumption
from streaming.job.backups.rebuild.report import RebuildReport
from streaming.job.backups.rebuild.start_positions import cut_partitions, start_positions
from streaming.job.backups.restoration import copy_files, finished_manifest, kept_topic_id, present_topic_id
from streaming.job.backups.topic_reach import CLIENT_ID, append_times, offsets_after, topic_reach
from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER
from streaming.job.group_batch.starts import Start, later
from streaming.job.options import JobOptions
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup
from streaming.job.state_stores import DEFAULT_STATE_PARTITIONS, DEFAULT_STATE_STORE, StateStore
from streaming.journal.reader import journal_entries

PROGRESS_ENTRIES = 100_000
"""A line of progress follows so many entries of the journal."""


SparkOnDemand = Callable[[], SparkSession]
"""A Spark session, which starts when it is needed first."""


class Rebuilt(msgspec.Struct, frozen=True, rename="camel"):
    """A rebuild. ``positions`` are the offsets of the first requests that the job reads, by partition.

    ``is_written`` is False if a group cannot be rebuilt as it was, and that was not accepted: nothing has changed.
    """

    checkpoint: str
    is_written: bool
    positions: dict[int, int]
    report: RebuildReport


class _Base(NamedTuple):
    """The groups before the entries of the journal, and what is fixed when a checkpoint is made."""

    groups: Mapping[str, StoredGroup]
    read: Mapping[int, int]
    state_partitions: int
    state_store: StateStore
    own_files: Path | None
    epoch: int = 0
    """That of the last start of the backup; 0 if it is not known."""


def rebuild(
    checkpoint: Path,
    backup: Path | None,
    options: JobOptions,
    timeout: float,
    report: Report,
    *,
    accepts_losses: bool,
) -> Rebuilt:
    """Write a new checkpoint at ``checkpoint``, which must be empty or missing.

    ``timeout`` is the longest wait for the next records of a topic, in seconds.

    Raises:
        CannotRun: the place is in use or not free, the backup is unfinished or damaged, or a job is active.
        CoordinatorError: a topic cannot be read.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    checkpoint = checkpoint.resolve()
    if backup is not None:
        finished_manifest(backup)
    with ExitStack() as stack:
        stack.enter_context(locked_place(checkpoint))
        require_free(checkpoint)
        topic_id = present_topic_id(options)
        last_job = find_last_job(options, topic_id, timeout)
        folder = stack.enter_context(unfinished_folder(checkpoint, report))
        with ExitStack() as until_written:

            @cache
            def spark() -> SparkSession:
                return until_written.enter_context(local_session(options, folder / CHECKPOINT, report))

            base = _base(backup, folder / "backup", options, topic_id, spark, report)
            rebuilt = RebuiltGroups(base.groups, base.read, base.epoch)
            content, found = _rebuilt(rebuilt, base, last_job, options, timeout, report)
            for line in found.lines():
                report(line)
            if not found.is_lossless and not accepts_losses:
                return Rebuilt(str(checkpoint), False, dict(content.offsets), found)
            write_checkpoint(spark(), content, folder, folder / CHECKPOINT, report)
        with writing(checkpoint):
            if base.own_files is not None:
                copy_own_files(base.own_files, folder / CHECKPOINT)
            last = start_with_epoch(options, content.topic, content.offsets, content.time, rebuilt.newest_epoch)
            write_own_files(folder / CHECKPOINT, topic_id, last_job.starts, last)
        place(folder / CHECKPOINT, checkpoint)
    return Rebuilt(str(checkpoint), True, dict(content.offsets), found)


def _base(
    backup: Path | None, copy: Path, options: JobOptions, topic_id: str | None, spark: SparkOnDemand, report: Report
) -> _Base:
    """The groups of the backup, read from a copy whose files were compared with the manifest."""
    partitions, store = options.state_partitions, options.state_store
    if backup is None:
        return _Base({}, {}, partitions or DEFAULT_STATE_PARTITIONS, store or DEFAULT_STATE_STORE, None)
    manifest: Manifest = finished_manifest(backup)
    with writing(copy):
        copy_files(backup, manifest, copy, report)
    needed = complete_batch(copy)
    read = needed.plan.offsets_of(options.topics.requests, backup)
    kept = kept_topic_id(copy)
    if kept is not None and topic_id is not None and kept != topic_id:
        raise CannotRun(
            f"{options.topics.requests} was deleted and created again since the backup: the places of the backup's and "
            "the journal's requests cannot be compared; rebuild without the backup"
        )
    groups = read_groups(spark(), copy, needed, report)
    by_id = {group.group_id: group for group in groups}
    partitions, store = partitions or needed.plan.state_partitions, store or store_in(needed)
    return _Base(by_id, read, partitions, store, copy, newest_epoch_in(copy))


def _rebuilt(
    rebuilt: RebuiltGroups, base: _Base, last_job: LastJob, options: JobOptions, timeout: float, report: Report
) -> tuple[Content, RebuildReport]:
    topics, client = options.topics, options.librdkafka_config
    # Before the journal: what is appended meanwhile is read by the job.
    requests = topic_reach(client, topics.requests, timeout)
    announced = AnnouncedEpochs(last_job.epoch)
    _read_journal(rebuilt, announced, options, timeout, report)
    now = time.time_ns() // 1_000_000
    complete = later(base.read, last_job.reach.read_until)
    positions = start_positions(requests, complete, rebuilt.newest, options.max_requests_per_batch)
    cut = cut_partitions(requests, rebuilt.newest, is_another_topic=last_job.is_of_other_topic)
    positions |= offsets_after(client, topics.requests, {each: rebuilt.newest_times[each] for each in cut}, timeout)
    again = sum(reach.end - positions[partition] for partition, reach in requests.items())
    report(f"after its start, the job reads the last {counted(again, 'request')} of {topics.requests}")
    times = append_times(client, topics.requests, positions, timeout)
    resumption = Resumption(positions, times, now, frozenset(cut))
    found = RebuildReport(entries=rebuilt.journal.entries, forked=sorted(rebuilt.journal.forked))
    found.topic_problems = [
        f"partition {partition} of {topics.requests} ends at offset {requests[partition].end}, the journal names "
        f"{offset}: it was deleted and created again, or cut; the job reads what was appended after the last change"
        for partition, offset in sorted(cut.items())
    ]
    if announced.left_out:
        found.topic_problems.append(
            f"left out: {counted(announced.left_out, 'entry', 'entries')} of {topics.journal} with an epoch that no "
            f"job has announced on {topics.coordinators}, whose newest is {last_job.epoch}"
        )
    _tell_forked_again(rebuilt, announced, options, timeout, report)
    told = read_directory(str(client["bootstrap.servers"]), topics.directory, CLIENT_ID, client, timeout)
    directory = {entry.group_id: entry for entry in told}
    groups = list(rebuilt.finished(resumption, options.protocol, directory))
    found.compare(groups, directory)
    stored = [group.stored for group in groups]
    batch_time = last_job.reach.batch_time or max(rebuilt.newest_times.values(), default=now)
    return Content(stored, topics.requests, positions, batch_time, base.state_partitions, base.state_store), found


def _read_journal(
    rebuilt: RebuiltGroups, announced: AnnouncedEpochs, options: JobOptions, timeout: float, report: Report
) -> None:
    report(f"reading {options.topics.journal}")
    for entry in announced.of(journal_entries(options.librdkafka_config, options.topics.journal, timeout)):
        rebuilt.add(entry)
        if rebuilt.journal.entries % PROGRESS_ENTRIES == 0:
            report(f"{counted(rebuilt.journal.entries, 'entry', 'entries')} of the journal")


def _tell_forked_again(
    rebuilt: RebuiltGroups, announced: AnnouncedEpochs, options: JobOptions, timeout: float, report: Report
) -> None:
    forked = rebuilt.journal.forked
    if not forked:
        return
    report(f"reading {options.topics.journal} again for {counted(len(forked), 'group')} with two histories")
    again = announced.of(journal_entries(options.librdkafka_config, options.topics.journal, timeout))
    for group_id, entries in rebuilt.journal.of_forked(again).items():
        rebuilt.tell_again(group_id, entries)


def write_own_files(checkpoint: Path, topic_id: str | None, starts: Sequence[Start], last: Start) -> None:
    """Write what a job writes at its starts: the starts, and the requests topic.

    ``starts`` are those that were announced. ``last`` is written if neither they nor the backup have its epoch.
    """
    for start in starts:
        write_start(checkpoint, start)
    keep_epoch(checkpoint, last)
    if topic_id is not None and kept_topic_id(checkpoint) is None:
        (checkpoint / TOPIC_FOLDER).mkdir(exist_ok=True)
        (checkpoint / TOPIC_FOLDER / topic_id).touch()
