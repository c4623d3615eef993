"""The checkpoint: whether it exists, can be read and written, and fits the options and the topics."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from streaming.cli.checks.finding import Finding, note, ok, problem
from streaming.cli.console import err
from streaming.cli.extras import missing_modules
from streaming.contract.errors import CannotRun
from streaming.contract.folders import require_writable
from streaming.contract.output.text import counted
from streaming.job.options import JobOptions
from streaming.job.state_stores import store_of
from streaming.job.topics.layout import Partitions

if TYPE_CHECKING:
    from streaming.job.spark_internals.checkpoint_layout.start_check import CheckpointFolder

CHECK = "checkpoint"


def check_checkpoint(options: JobOptions, request_partitions: int | None, request_topic_id: str | None) -> Finding:
    """Check the checkpoint of these options.

    ``request_partitions`` is the partition count of the request topic and ``request_topic_id`` its id; None if they
    are not known.
    """
    if missing_modules("job"):
        return note(CHECK, "not checked: reading it needs the extra job")
    from streaming.job.checkpoints.local_folder import LocalFolder, local_path
    from streaming.job.checkpoints.lock import user_of

    folder = local_path(options.checkpoint)
    if folder is None:
        return _check_store(options, request_partitions, request_topic_id)
    if not folder.exists():
        return _check_missing(folder)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return problem(CHECK, f"this user cannot read and write {folder}", "change its permissions")
    place = _Place(str(folder), LocalFolder(folder), user_of(folder))
    return _check_layout(place, options, request_partitions, request_topic_id)


class _Place(NamedTuple):
    """A checkpoint: what it is called, its files, and the process that uses it."""

    name: str
    files: "CheckpointFolder"
    user: str | None
    is_locked: bool = True
    """Whether a job locks it, so that without a user no job writes to it meanwhile."""


def _check_store(options: JobOptions, request_partitions: int | None, request_topic_id: str | None) -> Finding:
    """Check a checkpoint that is not on this machine, with the jars and the session of a job."""
    from streaming.embedded.jars import JarResolutionError, MissingPrerequisite
    from streaming.job.checkpoints.checkpoint import Checkpoint
    from streaming.job.checkpoints.file_systems import job_jars
    from streaming.job.session import spark_session, spark_settings

    local = msgspec.structs.replace(options, master="local[1]")
    try:
        with spark_session(spark_settings(local, job_jars(local.checkpoint, err.line))) as spark:
            place = _Place(local.checkpoint, Checkpoint(spark, local.checkpoint), None, is_locked=False)
            return _check_layout(place, options, request_partitions, request_topic_id)
    except CannotRun as refusal:
        return _misfit(refusal)
    except (JarResolutionError, MissingPrerequisite) as missing:
        return note(CHECK, f"not checked: {missing}")


def _check_missing(folder: Path) -> Finding:
    try:
        require_writable(folder)
    except CannotRun as refusal:
        return problem(CHECK, str(refusal), "choose another folder, or change the permissions")
    return note(CHECK, f"{folder} does not exist", "the first start of the job creates it")


def _check_layout(
    place: _Place, options: JobOptions, request_partitions: int | None, request_topic_id: str | None
) -> Finding:
    """Check a checkpoint's files, and compare the plan of its newest batch with the options and the request topic."""
    from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER, CheckpointLayout, check_layout, check_topic_id
    from streaming.job.checkpoints.damage import check_damage
    from streaming.job.spark_internals.checkpoint_layout.start_check import OFFSETS, UnreadableFile
    from streaming.job.spark_internals.offset_log import UnreadablePlan, read_batch_plan
    from streaming.job.spark_internals.registry import CHECKPOINT_LAYOUT, is_used

    if place.is_locked and place.user is None and is_used(CHECKPOINT_LAYOUT):
        # A running job writes and removes files meanwhile.
        try:
            check_damage(place.files, place.name)
        except CannotRun as damage:
            return _misfit(damage)
    batches = [int(name) for name in place.files.names(OFFSETS) if name.isdigit()]
    if not batches:
        return note(CHECK, f"{place.name} holds no batch yet")
    newest = f"{OFFSETS}/{max(batches)}"
    try:
        plan = read_batch_plan(place.files.text(newest))
        layout = CheckpointLayout(plan.state_partitions, plan.request_partitions, store_of(plan.state_store_class))
        known = layout.request_partitions.get(options.topics.requests, 0)
        partitions = Partitions(known if request_partitions is None else request_partitions, 0, 0)
        check_topic_id(next(iter(place.files.names(TOPIC_FOLDER)), None), request_topic_id, options)
        state_partitions, state_store = check_layout(layout, options, partitions)
    except (UnreadableFile, UnreadablePlan) as failure:
        detail = f"{place.name}/{newest} cannot be read: {failure}"
        return problem(CHECK, detail, "restore the checkpoint, or choose another one")
    except CannotRun as misfit:
        return _misfit(misfit)
    in_use = "" if place.user is None else f", in use by {place.user}"
    stored = f"state store {state_store}, {counted(state_partitions, 'state partition')}"
    return ok(CHECK, f"{place.name}: batch {max(batches)}, {stored}{in_use}")


def _misfit(refusal: CannotRun) -> Finding:
    detail, _, advice = str(refusal).rpartition(": ")
    return problem(CHECK, detail, advice)
