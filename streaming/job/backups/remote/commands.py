"""The commands on places of any file system. On folders of this machine, they are the commands themselves."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from coordinator_logic.snapshot import EarlierRelease
from streaming.contract.errors import CannotRun
from streaming.job.backups.backup import NAME_PATTERN, Taken, back_up
from streaming.job.backups.contents import HeldBatch, batches_in
from streaming.job.backups.manifest import MANIFEST, read_manifest, write_manifest
from streaming.job.backups.placement import Report
from streaming.job.backups.rebuild.rebuilding import Rebuilt, rebuild
from streaming.job.backups.remote.staging import OpenFolder, Staging, is_remote, staging
from streaming.job.backups.remote.transfer import (
    bring,
    bring_names,
    put_aside,
    put_backup,
    put_checkpoint,
    require_free_place,
)
from streaming.job.backups.restoration import Restored, restore
from streaming.job.backups.rewriting import Rewritten, rewrite
from streaming.job.backups.verification import Verification, verify
from streaming.job.checkpoints.local_folder import local_path
from streaming.job.checkpoints.store_folder import StoreFolder
from streaming.job.options import JobOptions
from streaming.job.state_stores import StateStore

UNFINISHED_MS = 24 * 3_600_000
"""A backup without a manifest that began so long ago is not being taken any more."""


def batches_at(location: str, options: JobOptions, report: Report) -> list[HeldBatch]:
    """The batches that a place holds; see :func:`batches_in`."""
    if (folder := local_path(location)) is not None:
        return batches_in(folder)
    with staging(options, report) as work:
        copy = work.path(location)
        with work.stores(location) as opened:
            bring_names(opened(location), copy, work.report)
        return [msgspec.structs.replace(each, folder=work.place_of(each.folder)) for each in batches_in(copy)]


def back_up_at(
    checkpoint: str, target: str, keep: int | None, now: datetime, options: JobOptions, report: Report
) -> Taken:
    """Take a backup; see :func:`back_up`. In a store, each one has all its files: nothing is linked."""
    source_folder, target_folder = local_path(checkpoint), local_path(target)
    if source_folder is not None and target_folder is not None:
        return back_up(source_folder, target_folder, keep, now, report)
    if f"{target.rstrip('/')}/".startswith(f"{checkpoint.rstrip('/')}/"):
        raise CannotRun(f"{target} is in the checkpoint: choose a folder outside of it")
    with staging(options, report) as work, work.stores(checkpoint, target) as opened:
        source = work.path(checkpoint)
        if is_remote(checkpoint):
            bring(opened(checkpoint), source, work.report)
        is_kept_there = is_remote(target)
        taken = back_up(source, work.path(target), None if is_kept_there else keep, now, work.report)
        folder = Path(taken.folder)
        _name_checkpoint(folder, checkpoint)
        if not is_kept_there:
            return taken
        backups = opened(target)
        put_backup(folder, backups.within(folder.name), work.report)
        _remove_old(backups, keep, now, report)
        return msgspec.structs.replace(taken, folder=work.place_of(taken.folder), copied=taken.size)


def verify_at(location: str, options: JobOptions, journal_timeout: float | None, report: Report) -> Verification:
    """Verify a backup or a checkpoint; that of a store may be in use. See :func:`verify`."""
    if (folder := local_path(location)) is not None:
        return verify(folder, options, journal_timeout, report)
    with staging(options, report) as work:
        with work.stores(location) as opened:
            bring(opened(location), work.path(location), work.report)
        return verify(work.path(location), options, journal_timeout, work.report)


def restore_at(
    backup: str, checkpoint: str, options: JobOptions, timeout: float | None, report: Report, *, accepts_losses: bool
) -> Restored:
    """Restore a backup; see :func:`restore`."""
    source, target = local_path(backup), local_path(checkpoint)
    if source is not None and target is not None:
        return restore(source, target, options, timeout, report, accepts_losses=accepts_losses)
    with staging(options, report) as work, work.stores(backup, checkpoint) as opened:
        _require_free(opened, checkpoint)
        if is_remote(backup):
            bring(opened(backup), work.path(backup), work.report)
        place = work.path(checkpoint)
        done = restore(work.path(backup), place, options, timeout, work.report, accepts_losses=accepts_losses)
        if is_remote(checkpoint):
            put_checkpoint(place, opened(checkpoint), work.report)
        return msgspec.structs.replace(done, checkpoint=work.place_of(done.checkpoint))


def rebuild_at(
    checkpoint: str, backup: str | None, options: JobOptions, timeout: float, report: Report, *, accepts_losses: bool
) -> Rebuilt:
    """Rebuild a checkpoint; see :func:`rebuild`."""
    target = local_path(checkpoint)
    if target is not None and not is_remote(backup):
        source = None if backup is None else local_path(backup)
        return rebuild(target, source, options, timeout, report, accepts_losses=accepts_losses)
    with staging(options, report) as work:
        with work.stores(checkpoint, *([] if backup is None else [backup])) as opened:
            _require_free(opened, checkpoint)
            if backup is not None and is_remote(backup):
                bring(opened(backup), work.path(backup), work.report)
        place, source = work.path(checkpoint), None if backup is None else work.path(backup)
        done = rebuild(place, source, options, timeout, work.report, accepts_losses=accepts_losses)
        if done.is_written:
            _put(work, checkpoint)
        return msgspec.structs.replace(done, checkpoint=work.place_of(done.checkpoint))


def rewrite_at(
    source: str,
    target: str,
    options: JobOptions,
    timeout: float | None,
    report: Report,
    *,
    state_partitions: int | None = None,
    state_store: StateStore | None = None,
    release: EarlierRelease | None = None,
) -> Rewritten:
    """Write the groups of a checkpoint into a new one; see :func:`rewrite`."""
    folders = local_path(source), local_path(target)
    write = partial(rewrite, state_partitions=state_partitions, state_store=state_store, release=release)
    if folders[0] is not None and folders[1] is not None:
        return write(folders[0], folders[1], options, timeout, report)
    source, target = source.rstrip("/"), target.rstrip("/")
    if target != source and (f"{target}/".startswith(f"{source}/") or f"{source}/".startswith(f"{target}/")):
        raise CannotRun(f"{target} and {source} overlap: choose another place")
    with staging(options, report) as work:
        with work.stores(source, target) as opened:
            if target != source:
                _require_free(opened, target)
            if is_remote(source):
                bring(opened(source), work.path(source), work.report)
        done = write(work.path(source), work.path(target), options, timeout, work.report)
        former = _put(work, target, is_aside=target == source) or work.place_of(done.former)
        return msgspec.structs.replace(done, checkpoint=work.place_of(done.checkpoint), former=former)


def _put(work: Staging, location: str, *, is_aside: bool = False) -> str | None:
    """Copy a checkpoint to its place in a store, if it has one there; returns where the former one of the place is."""
    if not is_remote(location):
        return None
    with work.stores(location) as opened:
        folder = opened(location)
        former = put_aside(folder, datetime.now(UTC), work.report) if is_aside else None
        put_checkpoint(work.path(location), folder, work.report)
    return None if former is None else former.location


def _require_free(opened: OpenFolder, checkpoint: str) -> None:
    if is_remote(checkpoint):
        require_free_place(opened(checkpoint))


def _name_checkpoint(backup: Path, checkpoint: str) -> None:
    """Let the manifest of a backup name the checkpoint instead of its copy."""
    manifest = read_manifest(backup)
    if manifest is not None and is_remote(checkpoint):
        write_manifest(backup, msgspec.structs.replace(manifest, checkpoint=checkpoint))


def _remove_old(backups: StoreFolder, keep: int | None, now: datetime, report: Report) -> None:
    """Remove the oldest backups beyond ``keep``, and those that were not finished a day ago.

    Two backups of the same batch count as one, as :func:`back_up` has it.
    """
    files = backups.files()
    names = sorted({path.partition("/")[0] for path in files if NAME_PATTERN.fullmatch(path.partition("/")[0])})
    finished = [name for name in names if f"{name}/{MANIFEST}" in files]
    began = {
        name: min(file.written_at for path, file in files.items() if path.startswith(f"{name}/")) for name in names
    }
    for name in names:
        if name not in finished and began[name] < now.timestamp() * 1000 - UNFINISHED_MS:
            report(f"removing {name}: it was not finished")
            backups.delete(name)
    if keep is None or len(finished) <= keep:
        return
    if finished[-1].rpartition("-")[2] == finished[-2].rpartition("-")[2]:
        report(f"no backup is removed: {finished[-2]} has the same batch")
        return
    for name in finished[:-keep]:
        report(f"removing {name}")
        # Without its manifest it is unfinished, so a kill leaves nothing that looks complete.
        backups.delete(f"{name}/{MANIFEST}")
        backups.delete(name)
