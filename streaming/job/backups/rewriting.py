"""Change what is fixed when a checkpoint is made: its state partitions, its state store, its place."""

from contextlib import ExitStack
from pathlib import Path

import msgspec

from streaming.contract.errors import CannotRun
from streaming.job.backups.checkpoint_writing import (
    Content,
    complete_batch,
    copy_own_files,
    local_session,
    read_groups,
    store_in,
    write_checkpoint,
)
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
    report: Report,
    *,
    state_partitions: int | None = None,
    state_store: StateStore | None = None,
) -> Rewritten:
    """Write the groups of a checkpoint that no job uses into a new one at ``target``; None: as in the former one.

    If both are the same place, the former one is kept beside it. Groups, deadlines and the place in the requests are
    those of the newest complete batch.

    Raises:
        CannotRun: a place is in use, not free or cannot be written; the checkpoint is damaged; nothing would change.
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    source, target = source.resolve(), target.resolve()
    is_same_place = source == target
    if not source.is_dir():
        raise CannotRun(f"{source} does not exist")
    if target != source and (target.is_relative_to(source) or source.is_relative_to(target)):
        raise CannotRun(f"{target} and {source} are in each other: choose another place")
    with ExitStack() as stack:
        stack.enter_context(locked_place(source))
        if is_same_place:
            require_replaceable(source)
        else:
            stack.enter_context(locked_place(target))
            require_free(target)
        needed = complete_batch(source)
        if len(needed.plan.offsets) != 1:
            raise CannotRun(f"{source} has read {len(needed.plan.offsets)} topics: no checkpoint of this job has")
        ((topic, offsets),) = needed.plan.offsets.items()
        partitions, store = state_partitions or needed.plan.state_partitions, state_store or store_in(needed)
        if is_same_place and (partitions, store) == (needed.plan.state_partitions, store_in(needed)):
            raise CannotRun(f"{source} has state-partitions {partitions} and state-store {store} already")
        folder = stack.enter_context(unfinished_folder(target, report))
        new = folder / CHECKPOINT
        with local_session(options, new, report) as spark:
            groups = read_groups(spark, source, needed, report)
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
