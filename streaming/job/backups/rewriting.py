"""Change what a job leaves as it is: a checkpoint's state partitions, its state store, its place, its format."""

from contextlib import ExitStack
from pathlib import Path

import msgspec

from coordinator_logic.snapshot import EarlierRelease
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
from streaming.job.backups.downgrade import groups_for
from streaming.job.backups.last_job import require_no_job
from streaming.job.backups.manifest import CHECKPOINT
from streaming.job.backups.placement import (
    Report,
    locked_place,
    place,
    replace,
    require_free,
    require_replaceable,
    unfinished_folder,
    writing,
)
from streaming.job.options import JobOptions
from streaming.job.state_stores import StateStore


class Rewritten(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint that was written from another one, and where that one is now."""

    checkpoint: str
    former: str
    groups: int
    state_partitions: int
    state_store: StateStore


def rewrite(
    source: Path,
    target: Path,
    options: JobOptions,
    timeout: float | None,
    report: Report,
    *,
    state_partitions: int | None = None,
    state_store: StateStore | None = None,
    release: EarlierRelease | None = None,
) -> Rewritten:
    """Write the groups of a checkpoint that no job uses into a new one at ``target``; None: as in the former one.

    If both are the same place, the former one is kept beside it. Groups, deadlines and the place in the requests are
    those of the newest complete batch. The format is that of ``release``, an earlier one; None: that of this one.
    ``timeout`` is the limit of each request to the brokers, in seconds; None if they are not asked whether a job is
    active.

    Raises:
        CannotRun: a place is in use, not free or cannot be written; a job is active; the checkpoint is damaged, or its
            last batch is open; nothing would change; the release does not have a group's type.
        CoordinatorError: the brokers do not tell whether a job is active.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    source, target = source.resolve(), target.resolve()
    is_same_place = source == target
    if not source.is_dir():
        raise CannotRun(f"{source} does not exist")
    if target != source and (target.is_relative_to(source) or source.is_relative_to(target)):
        raise CannotRun(f"{target} and {source} overlap: choose another place")
    with ExitStack() as stack:
        stack.enter_context(locked_place(source))
        if is_same_place:
            require_replaceable(source)
        else:
            stack.enter_context(locked_place(target))
            require_free(target)
        needed = complete_batch(source)
        _require_no_open_batch(source, needed.batch)
        if len(needed.plan.offsets) != 1:
            raise CannotRun(
                f"{source} has read {counted(len(needed.plan.offsets), 'topic')}: no checkpoint of this job has"
            )
        ((topic, offsets),) = needed.plan.offsets.items()
        partitions, store = state_partitions or needed.plan.state_partitions, state_store or store_in(needed)
        changes = release, partitions, store
        if is_same_place and changes == (None, needed.plan.state_partitions, store_in(needed)):
            raise CannotRun(f"{source} has state-partitions {partitions} and state-store {store} already")
        require_no_job(options, timeout, report)
        folder = stack.enter_context(unfinished_folder(target, report))
        new = folder / CHECKPOINT
        with local_session(options, new, report) as spark:
            groups = read_groups(spark, source, needed, report)
            if release is not None:
                groups = groups_for(release, groups, report)
            content = Content(groups, topic, offsets, needed.plan.time, partitions, store)
            write_checkpoint(spark, content, folder, new, report)
        with writing(target):
            copy_own_files(source, new)
        former = source
        if is_same_place:
            former = replace(new, source)
        else:
            place(new, target)
    return Rewritten(str(target), str(former), len(groups), partitions, store)


def _require_no_open_batch(checkpoint: Path, complete: int) -> None:
    """Check that the batch after the complete one was not planned. Raises CannotRun.

    A job that was killed may have answered a part of it. Its plan lets the next start run it again with the same bytes;
    the new checkpoint has no plan, and would forget what only the batch's time has caused, such as an expired session.
    """
    planned = max((int(path.name) for path in checkpoint.glob("offsets/*") if path.name.isdigit()), default=complete)
    if planned > complete:
        raise CannotRun(f"{checkpoint} has begun batch {planned} and not completed it: start the job once and stop it")
