"""``group-coordinator checkpoint``: restore, rebuild, repartition and migrate a checkpoint that no job uses."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli.commands.checkpoint import local_folder, print_line, progress
from streaming.cli.commands.doctor import NOT_GIVEN
from streaming.cli.console import (
    KAFKA_PANEL,
    REFUSED,
    UNANSWERED,
    USAGE,
    AnyOption,
    AsJson,
    Brokers,
    ConfigurationFile,
    Prefix,
    fail,
    failures_as_lines,
    key_values,
    print_json,
    require,
)
from streaming.cli.help_output import flag, option
from streaming.client.errors import CoordinatorError
from streaming.job.options import JobOptions, load_options

if TYPE_CHECKING:
    from streaming.job.backups.rewriting import Rewritten

Place = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The place of the checkpoint: empty or missing.")]
Existing = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint, which no job uses.")]
Timeout = Annotated[
    int, option(metavar="SECONDS", text="How long to wait for a topic's next records.", panel=KAFKA_PANEL, min=1)
]
AcceptsLosses = Annotated[bool, flag("--yes", "Go on although something is lost, or may be.")]
StatePartitions = Annotated[
    int | None, option(metavar="COUNT", text="The number of state partitions.", default="as before, or 1", min=1)
]
Store = Annotated[
    str | None, option("--state-store", metavar="STORE", text="memory or rocksdb.", default="as before, or memory")
]


def restore(
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="A finished backup.")],
    checkpoint: Place,
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    timeout: Timeout = 30,
    yes: AcceptsLosses = False,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: AsJson = False,
) -> None:
    """Copy a backup into the place of the job's checkpoint, and compare every file with the manifest.

    First it says what is lost: the requests since the backup that their topic no longer has. Without brokers it cannot
    know. If something is lost, or may be, it goes on with --yes only. A restore that is interrupted leaves the place as
    it was; the next one removes its files.
    """
    require("checkpoint restore", "job")
    with failures_as_lines():
        options = _options(bootstrap_servers, topic_prefix, checkpoint, config, settings)
        from streaming.job.backups.restoration import restore as restore_backup

        limit = _limit(options, timeout)
        source, target = local_folder(backup), local_folder(checkpoint)
        try:
            done = restore_backup(source, target, options, limit, progress(as_json), accepts_losses=yes)
        except CoordinatorError as error:
            fail(error.message, UNANSWERED)
    if as_json:
        print_json(done)
    else:
        print_line(f"{done.checkpoint}: batch {done.batch}, {done.files} files, {done.size} bytes: start the job")


def rebuild(
    checkpoint: Place,
    backup: Annotated[
        str | None, option(metavar="BACKUP", text="Begin with this backup, and add the journal after it.")
    ] = None,
    state_partitions: StatePartitions = None,
    state_store: Store = None,
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    timeout: Timeout = 30,
    yes: AcceptsLosses = False,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a new checkpoint from the journal, for when there is none to restore, or one that is too old.

    First it says which groups the journal no longer has, or only in part; then it goes on with --yes only. Members keep
    their ids and generations, and get new sessions. The job reads the last requests again, and applies those that the
    journal lacks. A rebuild that is interrupted leaves the place as it was.
    """
    require("checkpoint rebuild", "job")
    with failures_as_lines():
        fixed = {"state_partitions": state_partitions, "state_store": state_store}
        options = _options(bootstrap_servers, topic_prefix, checkpoint, config, settings, **fixed)
        if options.bootstrap_servers == NOT_GIVEN:
            fail("the journal is read from the brokers: -b is missing", USAGE)
        from streaming.job.backups.rebuild.rebuilding import rebuild as rebuild_checkpoint
        from streaming.job.backups.restoration import GO_ON

        source, target = None if backup is None else local_folder(backup), local_folder(checkpoint)
        try:
            done = rebuild_checkpoint(target, source, options, float(timeout), progress(as_json), accepts_losses=yes)
        except CoordinatorError as error:
            fail(error.message, UNANSWERED)
    if as_json:
        print_json(done)
    if not done.is_written:
        fail(GO_ON, REFUSED)
    if not as_json:
        found = done.report
        partial = len(found.incomplete) + len(found.differing)
        summary = f"{found.groups} groups, {partial} of them in part, {len(found.lost)} lost"
        print_line(f"{done.checkpoint}: {summary}: start the job")


def repartition(
    checkpoint: Existing,
    state_partitions: Annotated[int, option(metavar="COUNT", text="The new number of state partitions.", min=1)],
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    timeout: Timeout = 30,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: AsJson = False,
) -> None:
    """Change the number of state partitions of a checkpoint that no job uses.

    The groups are written into a new checkpoint, which takes the place of the former one. That one is kept beside it,
    with the time in its name. If the command is interrupted, the former one is still in its place.
    With brokers, it refuses while a job is active.
    """
    require("checkpoint repartition", "job")
    with failures_as_lines():
        options = _options(bootstrap_servers, topic_prefix, checkpoint, config, settings)
        place = local_folder(checkpoint)
        done = _rewritten(place, place, options, timeout, as_json, state_partitions=state_partitions)
    _print_rewritten(done, as_json)


def migrate(
    checkpoint: Existing,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The new place, empty or missing; or CHECKPOINT.")],
    state_store: Store = None,
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    timeout: Timeout = 30,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: AsJson = False,
) -> None:
    """Write the groups of a checkpoint that no job uses into a new one: in another place, or for another state store.

    The former checkpoint is kept: where it is, or, if both are the same place, beside it with the time in its name. If
    the command is interrupted, the former one is still in its place.
    With brokers, it refuses while a job is active.
    """
    require("checkpoint migrate", "job")
    with failures_as_lines():
        options = _options(bootstrap_servers, topic_prefix, checkpoint, config, settings, state_store=state_store)
        source, place = local_folder(checkpoint), local_folder(target)
        done = _rewritten(source, place, options, timeout, as_json, state_store=options.state_store)
    _print_rewritten(done, as_json)


def _options(
    bootstrap_servers: str | None,
    topic_prefix: str | None,
    checkpoint: str,
    config: ConfigurationFile,
    settings: AnyOption,
    **more: Any,
) -> JobOptions:
    flags: dict[str, object] = {
        "bootstrap_servers": bootstrap_servers,
        "topic_prefix": topic_prefix,
        "checkpoint": checkpoint,
        **more,
        **key_values(settings, "--set"),
    }
    return load_options(flags, os.environ, config, {"bootstrap-servers": NOT_GIVEN})


def _limit(options: JobOptions, timeout: int) -> float | None:
    """The limit of requests to the brokers; None without brokers."""
    return None if options.bootstrap_servers == NOT_GIVEN else float(timeout)


def _rewritten(
    source: Path, target: Path, options: JobOptions, timeout: int, as_json: bool, **changes: Any
) -> "Rewritten":
    from streaming.job.backups.rewriting import rewrite

    try:
        return rewrite(source, target, options, _limit(options, timeout), progress(as_json), **changes)
    except CoordinatorError as error:
        fail(error.message, UNANSWERED)


def _print_rewritten(done: "Rewritten", as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    print_line(
        f"{done.checkpoint}: {done.groups} groups, state-partitions {done.state_partitions}, state-store "
        f"{done.state_store}; the former checkpoint is {done.former}"
    )
