"""The checkpoint: whether it exists, can be read and written, and fits the options and the topics."""

import os
from pathlib import Path

from streaming.cli.checks.finding import Finding, note, ok, problem
from streaming.cli.extras import missing_modules
from streaming.contract.errors import CannotRun
from streaming.contract.folders import require_writable
from streaming.contract.output.text import counted
from streaming.job.options import JobOptions
from streaming.job.state_stores import store_of
from streaming.job.topics.layout import Partitions

CHECK = "checkpoint"


def check_checkpoint(options: JobOptions, request_partitions: int | None, request_topic_id: str | None) -> Finding:
    """Check the checkpoint of these options.

    ``request_partitions`` is the partition count of the request topic and ``request_topic_id`` its id; None if they
    are not known.
    """
    if missing_modules("job"):
        return note(CHECK, "not checked: reading it needs the extra job")
    from streaming.job.checkpoints.local_folder import local_path

    folder = local_path(options.checkpoint)
    if folder is None:
        return note(CHECK, f"not checked: {options.checkpoint} is not a local folder", "the job checks it at its start")
    if not folder.exists():
        return _check_missing(folder)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return problem(CHECK, f"this user cannot read and write {folder}", "change its permissions")
    return _check_layout(folder, options, request_partitions, request_topic_id)


def _check_missing(folder: Path) -> Finding:
    try:
        require_writable(folder)
    except CannotRun as refusal:
        return problem(CHECK, str(refusal), "choose another folder, or change the permissions")
    return note(CHECK, f"{folder} does not exist", "the first start of the job creates it")


def _check_layout(
    folder: Path, options: JobOptions, request_partitions: int | None, request_topic_id: str | None
) -> Finding:
    """Check a checkpoint's files, and compare the plan of its newest batch with the options and the request topic."""
    from streaming.job.checkpoints.checkpoint import TOPIC_FOLDER, CheckpointLayout, check_layout, check_topic_id
    from streaming.job.checkpoints.damage import check_damage
    from streaming.job.checkpoints.local_folder import LocalFolder
    from streaming.job.checkpoints.lock import user_of
    from streaming.job.spark_internals.offset_log import UnreadablePlan, read_batch_plan
    from streaming.job.spark_internals.registry import CHECKPOINT_LAYOUT, is_used

    user = user_of(folder)
    if user is None and is_used(CHECKPOINT_LAYOUT):
        # A running job writes and removes files meanwhile.
        try:
            check_damage(LocalFolder(folder), str(folder))
        except CannotRun as damage:
            return _misfit(damage)
    batches = [path for path in folder.glob("offsets/*") if path.name.isdigit()]
    if not batches:
        return note(CHECK, f"{folder} holds no batch yet")
    newest = max(batches, key=lambda path: int(path.name))
    try:
        plan = read_batch_plan(newest.read_text())
        layout = CheckpointLayout(plan.state_partitions, plan.request_partitions, store_of(plan.state_store_class))
        known = layout.request_partitions.get(options.topics.requests, 0)
        partitions = Partitions(known if request_partitions is None else request_partitions, 0, 0)
        # Hadoop writes hidden files with checksums.
        kept_ids = (path.name for path in folder.glob(f"{TOPIC_FOLDER}/[!.]*"))
        check_topic_id(next(kept_ids, None), request_topic_id, options)
        state_partitions, state_store = check_layout(layout, options, partitions)
    except (OSError, UnreadablePlan) as failure:
        return problem(CHECK, f"{newest} cannot be read: {failure}", "restore the checkpoint, or choose another one")
    except CannotRun as misfit:
        return _misfit(misfit)
    in_use = "" if user is None else f", in use by {user}"
    stored = f"state store {state_store}, {counted(state_partitions, 'state partition')}"
    return ok(CHECK, f"{folder}: batch {newest.name}, {stored}{in_use}")


def _misfit(refusal: CannotRun) -> Finding:
    detail, _, advice = str(refusal).rpartition(": ")
    return problem(CHECK, detail, advice)
