"""Write the groups of a checkpoint into a new one, read them back, and give it the job's own files."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.embedded.jars import resolve_jars
from streaming.job.backups.backup import OWN_FOLDERS
from streaming.job.backups.placement import Report
from streaming.job.group_batch.state_row import StateRow
from streaming.job.operator import timeout_of
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.checkpoint_layout.needed_files import (
    NeededFiles,
    UnreadableCheckpoint,
    needed_files,
    newest_complete_batch,
)
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup, UnreadableState, stored_groups
from streaming.job.spark_internals.checkpoint_layout.state_writer import name_offsets, write_state
from streaming.job.spark_internals.offset_log import UnreadablePlan, time_of_batch
from streaming.job.state_stores import StateStore, store_of


class Content(NamedTuple):
    """What a checkpoint is written with.

    ``offsets`` are those after the last request that it has read, ``time`` is that of the batch that has read it, in ms
    since the epoch.
    """

    groups: Sequence[StoredGroup]
    topic: str
    offsets: Mapping[int, int]
    time: int
    state_partitions: int
    state_store: StateStore


@contextmanager
def local_session(options: JobOptions, checkpoint: Path, report: Report) -> Iterator[SparkSession]:
    """A session of this machine's, whatever the job's master is: the checkpoint is local."""
    local = msgspec.structs.replace(options, master="local[*]", checkpoint=str(checkpoint))
    report("starting Spark")
    with spark_session(spark_settings(local, resolve_jars(report))) as spark:
        yield spark


def complete_batch(checkpoint: Path) -> NeededFiles:
    """The newest complete batch of a checkpoint, and its files.

    Raises:
        CannotRun: there is none, a file is missing, or one that names others cannot be read.
    """
    batch = newest_complete_batch(checkpoint)
    if batch is None:
        raise CannotRun(f"{checkpoint} has no complete batch: it is not a checkpoint, or its job has not yet started")
    try:
        needed = needed_files(checkpoint, batch)
    except UnreadableCheckpoint as unreadable:
        raise CannotRun(f"{checkpoint} is damaged: {unreadable}") from unreadable
    if needed.missing:
        raise CannotRun(f"{checkpoint} is damaged: batch {batch} needs {', '.join(needed.missing)}")
    return needed


def store_in(needed: NeededFiles) -> StateStore:
    """The state store of a checkpoint."""
    store = store_of(needed.plan.state_store_class)
    # The files of any other are not known.
    assert store is not None
    return store


def read_groups(spark: SparkSession, checkpoint: Path, needed: NeededFiles, report: Report) -> list[StoredGroup]:
    """All groups of a checkpoint. Raises CannotRun."""
    report(f"reading the groups of batch {needed.batch}")
    try:
        groups = list(stored_groups(spark, checkpoint, needed.batch, store_in(needed)))
    except UnreadableState as unreadable:
        raise CannotRun(f"the state of {checkpoint} cannot be read: {unreadable}") from unreadable
    report(f"{counted(len(groups), 'group')}")
    return groups


def write_checkpoint(spark: SparkSession, content: Content, folder: Path, checkpoint: Path, report: Report) -> None:
    """Write a checkpoint at ``checkpoint`` in ``folder``, and compare what Spark has stored with the groups.

    It can be put in its place when the session has ended: until then Spark may write files.

    Raises:
        CannotRun: it cannot be written, or Spark has stored something else.
    """
    report(
        f"writing {counted(len(content.groups), 'group')}: state-partitions {content.state_partitions}, state-store "
        f"{content.state_store}"
    )
    write_state(spark, content.groups, checkpoint, folder / "groups", content.state_partitions, content.state_store)
    try:
        written_at = time_of_batch((checkpoint / "offsets" / "0").read_text())
    except (OSError, UnreadablePlan) as error:
        raise CannotRun(f"Spark has written another checkpoint: {error}") from error
    name_offsets(checkpoint, content.topic, content.offsets, content.time)
    report("comparing what was written")
    needed = complete_batch(checkpoint)
    if (store_in(needed), needed.plan.state_partitions) != (content.state_store, content.state_partitions):
        raise CannotRun(
            f"Spark has written {needed.plan.state_partitions} partitions for {needed.plan.state_store_class}"
        )
    try:
        found = list(stored_groups(spark, checkpoint, 0, content.state_store))
    except UnreadableState as unreadable:
        raise CannotRun(f"what was written cannot be read: {unreadable}") from unreadable
    require_same_groups(content.groups, found, written_at)


def require_same_groups(given: Sequence[StoredGroup], found: Sequence[StoredGroup], written_at: int) -> None:
    """Check that Spark has stored the given groups in a batch of this time (ms since the epoch).

    A group that was due by then is called after that batch: Spark takes no timeout that is not later than the batch.

    Raises:
        CannotRun: it has stored something else.
    """
    if len(found) != len(given):
        raise CannotRun(f"Spark has stored {counted(len(found), 'group')} of {len(given)}")
    by_id = {each.group_id: each for each in found}
    for group in given:
        stored = by_id.get(group.group_id)
        if stored is None or StateRow.unpacked(stored.stored) != StateRow.unpacked(group.stored):
            raise CannotRun(f"Spark has stored group {group.group_id} otherwise")
        wake_at = timeout_of(group.wake_at, written_at) if group.wake_at > 0 else 0
        if max(0, stored.wake_at) != wake_at:
            raise CannotRun(f"Spark calls group {group.group_id} at {stored.wake_at}, not at {wake_at}")


def copy_own_files(source: Path, checkpoint: Path) -> None:
    """Copy the job's own files from another checkpoint."""
    for folder in OWN_FOLDERS:
        if (source / folder).is_dir():
            shutil.copytree(source / folder, checkpoint / folder, ignore=shutil.ignore_patterns(".*"))
