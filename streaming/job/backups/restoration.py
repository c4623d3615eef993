"""Restore a backup: a copy of its checkpoint, each file compared with the manifest, put in its place all at once."""

import shutil
from pathlib import Path

import msgspec

from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.backups.backup import PROGRESS_FILES, finished_backups
from streaming.job.backups.contents import several_backups
from streaming.job.backups.epochs import keep_epoch, newest_epoch_of, start_with_epoch
from streaming.job.backups.last_job import require_no_job
from streaming.job.backups.losses import LossReport, RestorePoint, restore_losses
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST, Manifest, fingerprint, read_manifest
from streaming.job.backups.placement import Report, locked_place, place, require_free, unfinished_folder, writing
from streaming.job.backups.topic_reach import CLIENT_ID, topic_reach
from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER
from streaming.job.options import JobOptions
from streaming.job.spark_internals.offset_log import BatchPlan, UnreadablePlan, read_batch_plan
from streaming.job.topics.creation import admin_client
from streaming.job.topics.inspection import ADMIN_LIMIT_SECONDS, describe_topics, text_of_id
from streaming.journal.reader import journal_entries

UNKNOWN_LOSSES = "what can be lost is not known without the brokers: -b compares the backup with the topics"

GO_ON = "nothing has been changed: give --yes to continue"


class Restored(msgspec.Struct, frozen=True, rename="camel"):
    """A finished restore: the batch of the checkpoint, its files and their bytes, and what was said before it."""

    checkpoint: str
    batch: int
    files: int
    size: int
    losses: list[str]


def restore(
    backup: Path,
    checkpoint: Path,
    options: JobOptions,
    timeout: float | None,
    report: Report,
    *,
    accepts_losses: bool,
) -> Restored:
    """Put a copy of the backup's checkpoint at ``checkpoint``, which must be empty or missing.

    ``timeout`` is the limit of each request to the brokers, in seconds; None if they are not asked whether a job is
    active and what can be lost.

    Raises:
        CannotRun: the backup is unfinished or damaged, the place is in use or not free, a job is active, or something
            can be lost and that is not accepted.
        CoordinatorError: the topics cannot be read.
    """
    manifest, checkpoint = finished_manifest(backup), checkpoint.resolve()
    with locked_place(checkpoint):
        require_free(checkpoint)
        last_job = require_no_job(options, timeout, report)
        losses = _losses(backup, manifest, options, timeout)
        for line in losses.lines:
            report(line)
        if not losses.is_lossless and not accepts_losses:
            raise CannotRun(GO_ON)
        is_epoch_lost = last_job is not None and not last_job.epoch
        epoch = _epoch_in_journal(options, timeout, report) if is_epoch_lost and timeout is not None else 0
        with unfinished_folder(checkpoint, report) as folder:
            new = folder / CHECKPOINT
            report(f"copying {counted(len(manifest.files), 'file')} of batch {manifest.batch}")
            with writing(new):
                copy_files(backup, manifest, new, report)
                if epoch:
                    plan, topic = plan_of(backup, manifest), options.topics.requests
                    keep_epoch(new, start_with_epoch(options, topic, plan.offsets[topic], plan.time, epoch))
            place(new, checkpoint)
    return Restored(str(checkpoint), manifest.batch, len(manifest.files), manifest.size, losses.lines)


def finished_manifest(backup: Path) -> Manifest:
    """The manifest of a backup. Raises CannotRun for a folder that is no finished backup."""
    if backups := finished_backups(backup):
        raise several_backups(backup, backups, "choose")
    manifest = read_manifest(backup)
    if manifest is None:
        raise CannotRun(f"{backup} is not a finished backup: it has no {MANIFEST}")
    return manifest


def copy_files(backup: Path, manifest: Manifest, new: Path, report: Report) -> None:
    """Copy the files of a backup's checkpoint, and compare each with the manifest.

    Raises:
        CannotRun: a file is lost, or has other contents.
    """
    for count, (name, expected) in enumerate(sorted(manifest.files.items()), 1):
        target = new / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(backup / CHECKPOINT / name, target)
        except FileNotFoundError as lost:
            raise CannotRun(f"{backup} is damaged: {name} is lost: choose another backup") from lost
        if fingerprint(target) != expected:
            raise CannotRun(f"{backup} is damaged: {name} is not as in its manifest: choose another backup")
        if count % PROGRESS_FILES == 0:
            report(f"{count} of {counted(len(manifest.files), 'file')}")


def plan_of(backup: Path, manifest: Manifest) -> BatchPlan:
    """How the batch of a backup was planned. Raises CannotRun."""
    path = backup / CHECKPOINT / f"offsets/{manifest.batch}"
    try:
        return read_batch_plan(path.read_text(errors="replace"))
    except (OSError, UnreadablePlan) as error:
        raise CannotRun(f"{backup} is damaged: {path} cannot be read: {error}") from error


def kept_topic_id(checkpoint: Path) -> str | None:
    """The id of the requests topic that a checkpoint has read; None if it was not recorded."""
    names = (path.name for path in (checkpoint / TOPIC_FOLDER).glob("[!.]*"))
    return next(names, None)


def present_topic_id(options: JobOptions) -> str | None:
    """The id of the requests topic; None if it does not exist, or if the brokers have no ids. Raises CannotRun."""
    topic = options.topics.requests
    with admin_client(options.librdkafka_config) as admin:
        described = describe_topics(admin, [topic], ADMIN_LIMIT_SECONDS)
    return text_of_id(described[topic].topic_id) if topic in described else None


def _losses(backup: Path, manifest: Manifest, options: JobOptions, timeout: float | None) -> LossReport:
    if timeout is None:
        return LossReport([UNKNOWN_LOSSES], is_lossless=False)
    plan, topic = plan_of(backup, manifest), options.topics.requests
    read = plan.offsets_of(topic, backup)
    kept, present = kept_topic_id(backup / CHECKPOINT), present_topic_id(options)
    requests = topic_reach(options.librdkafka_config, topic, timeout)
    journal = topic_reach(options.librdkafka_config, options.topics.journal, timeout)
    is_another_topic = kept is not None and present is not None and kept != present
    point = RestorePoint(read, plan.time)
    return restore_losses(topic, point, requests, journal, is_another_topic=is_another_topic)


def _epoch_in_journal(options: JobOptions, timeout: float, report: Report) -> int:
    """The highest epoch of a job, without its announcements. Raises as :func:`journal_entries`."""
    topics = options.topics
    report(f"{topics.coordinators} names no job: reading {topics.journal} for the job's epoch")
    return newest_epoch_of(journal_entries(options.librdkafka_config, topics.journal, timeout, client_id=CLIENT_ID))
