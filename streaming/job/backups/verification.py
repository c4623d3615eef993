"""Verify a checkpoint that no job uses, or a backup: its files, its groups, and what the journal says of them."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from coordinator_logic.group import Group
from coordinator_logic.snapshot import UnreadableSnapshot
from coordinator_logic.stored_parts import UnreadablePart
from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.embedded.jars import resolve_jars
from streaming.job.backups.backup import finished_backups
from streaming.job.backups.checkpoint_writing import store_in
from streaming.job.backups.contents import several_backups
from streaming.job.backups.journal_claims import JournalComparison
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST, Manifest, fingerprint, read_manifest
from streaming.job.backups.placement import Report
from streaming.job.checkpoints.lock import user_of
from streaming.job.group_batch.state_row import load_whole
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.checkpoint_layout.needed_files import (
    NeededFiles,
    UnreadableCheckpoint,
    needed_files,
    newest_complete_batch,
)
from streaming.job.spark_internals.checkpoint_layout.state_reader import UnreadableState, stored_groups
from streaming.journal.reader import journal_entries

PROGRESS_ENTRIES = 100_000
"""A line of progress follows so many entries of the journal."""


class Verification(msgspec.Struct, rename="camel"):
    """What was found. ``differences`` are lines; there is none if all is well."""

    batch: int = 0
    files: int = 0
    groups: int = 0
    journal_entries: int | None = None
    """None if the journal was not read."""
    compared_in_full: int = 0
    """Groups of which the journal has every entry."""
    compared_in_part: int = 0
    """Groups of which the journal has only the last entries."""
    differences: list[str] = []


class _StoredGroups:
    """The groups of a state, by group id. The rows are kept, because decoded groups take several times their size."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.positions: dict[str, tuple[str, int]] = {}
        """The incarnation and the sequence number of each group that can be read."""
        self.unreadable: set[str] = set()

    def add(self, group_id: str, stored: bytes, result: Verification) -> None:
        """Add a group, if it can be decoded."""
        result.groups += 1
        try:
            group = _decoded(group_id, stored)
        except (UnreadableSnapshot, UnreadablePart) as damage:
            self.unreadable.add(group_id)
            result.differences.append(f"group {group_id}: {damage}")
        else:
            self.rows[group_id] = stored
            self.positions[group_id] = group.incarnation, group.sequence


def verify(folder: Path, options: JobOptions, journal_timeout: float | None, report: Report) -> Verification:
    """Verify ``folder``. ``options`` have the brokers and the topic prefix of the journal.

    ``journal_timeout`` is the longest wait for the journal's next records, in seconds; None leaves the journal out.

    Raises:
        CannotRun: the folder is in use, is an unfinished backup, or is neither a checkpoint nor a backup.
        CoordinatorError: the journal cannot be read.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    checkpoint, manifest = _located(folder)
    result = Verification()
    needed = _verify_files(checkpoint, manifest, result, report)
    if result.differences or needed is None:
        report("the groups are not read, because of the files")
        return result
    stored = _verify_groups(options, checkpoint, needed, result, report)
    if stored is not None and journal_timeout is not None:
        read = needed.plan.offsets_of(options.topics.requests, folder)
        comparison = JournalComparison(stored.positions, read)
        _read_journal(options, comparison, journal_timeout, report)
        _compare(stored, comparison, result)
    return result


def _located(folder: Path) -> tuple[Path, Manifest | None]:
    """The checkpoint in a folder, and its manifest if the folder is a backup."""
    if backups := finished_backups(folder):
        raise several_backups(folder, backups, "verify")
    if manifest := read_manifest(folder):
        return folder / CHECKPOINT, manifest
    if (folder / CHECKPOINT).is_dir():
        raise CannotRun(f"{folder} is an unfinished backup: it has no {MANIFEST}. The next backup removes it")
    if newest_complete_batch(folder) is None:
        raise CannotRun(f"{folder} is neither a backup nor a checkpoint with a complete batch")
    if (user := user_of(folder)) is not None:
        raise CannotRun(f"{folder} is in use by {user}: take a backup, and verify the backup")
    return folder, None


def _verify_files(
    checkpoint: Path, manifest: Manifest | None, result: Verification, report: Report
) -> NeededFiles | None:
    newest = newest_complete_batch(checkpoint)
    result.batch = manifest.batch if manifest is not None else newest or 0
    if manifest is not None:
        report(f"comparing {counted(len(manifest.files), 'file')} with the manifest")
        result.differences += _differences_from(manifest, checkpoint)
    try:
        needed = needed_files(checkpoint, result.batch)
    except UnreadableCheckpoint as unreadable:
        result.differences.append(str(unreadable))
        return None
    result.files = len(needed.present)
    known = {difference.partition(":")[0] for difference in result.differences}
    result.differences += [f"{name}: missing" for name in needed.missing if name not in known]
    return needed


def _differences_from(manifest: Manifest, checkpoint: Path) -> Iterator[str]:
    for name, expected in sorted(manifest.files.items()):
        try:
            found = fingerprint(checkpoint / name)
        except FileNotFoundError:
            yield f"{name}: missing"
        except OSError as error:
            yield f"{name}: cannot be read: {error.strerror}"
        else:
            if found.size != expected.size:
                yield f"{name}: {counted(found.size, 'byte')}, in the manifest {expected.size}"
            elif found != expected:
                yield f"{name}: its contents are not those of the manifest"
    present = {path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("[!.]*") if path.is_file()}
    for name in sorted(present - manifest.files.keys()):
        yield f"{name}: not in the manifest"


def _verify_groups(
    options: JobOptions, checkpoint: Path, needed: NeededFiles, result: Verification, report: Report
) -> _StoredGroups | None:
    """Decode every group; None if the state cannot be read."""
    report(f"reading the groups of batch {needed.batch} with Spark")
    found = _StoredGroups()
    # The folder is local, so a local session reads it whatever the job's master is.
    local = msgspec.structs.replace(options, master="local[*]", checkpoint=str(checkpoint))
    try:
        with spark_session(spark_settings(local, resolve_jars(report))) as spark:
            for group_id, stored, _ in stored_groups(spark, checkpoint, needed.batch, store_in(needed)):
                found.add(group_id, stored, result)
    except UnreadableState as unreadable:
        result.differences.append(f"the state of batch {needed.batch} cannot be read: {unreadable}")
        return None
    report(f"{counted(result.groups, 'group')}, {len(found.unreadable)} of them unreadable")
    return found


def _decoded(group_id: str, stored: bytes) -> Group:
    """Decode a group's state row as :func:`load_whole` does, and compare the group's id."""
    group = load_whole(stored)
    if group.group_id != group_id:
        raise UnreadableSnapshot(f"its state is that of group {group.group_id}")
    return group


def _read_journal(options: JobOptions, comparison: JournalComparison, timeout: float, report: Report) -> None:
    topic = options.topics.journal
    report(f"reading {topic}")
    unreadable = 0
    for entry in journal_entries(options.librdkafka_config, topic, timeout):
        if entry is None:
            unreadable += 1
            continue
        comparison.add(entry)
        if comparison.entries % PROGRESS_ENTRIES == 0:
            report(f"{counted(comparison.entries, 'entry', 'entries')} of the journal")
    if unreadable:
        report(f"warning: {unreadable} records of {topic} are not entries of the journal")


def _compare(stored: _StoredGroups, comparison: JournalComparison, result: Verification) -> None:
    result.journal_entries = comparison.entries
    for group_id, row in sorted(stored.rows.items()):
        is_complete = comparison.is_complete(group_id)
        result.compared_in_full += is_complete is True
        result.compared_in_part += is_complete is False
        group = _decoded(group_id, row)
        result.differences += [f"group {group_id}: {line}" for line in comparison.differences_of(group)]
    for group_id, incarnation in sorted(comparison.missing().items()):
        if group_id not in stored.unreadable:
            result.differences.append(f"group {group_id}: incarnation {incarnation} is in the journal only")
