"""``group-coordinator checkpoint``: back up, list, verify, restore, rebuild and change a job's checkpoint."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator_logic.snapshot import WRITERS_FOR_RELEASES, EarlierRelease
from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import with_options
from streaming.cli.console import (
    KAFKA_PANEL,
    REFUSED,
    USAGE,
    err,
    fail,
    out,
    print_json,
    progress,
    require,
)
from streaming.cli.help_output import flag, option
from streaming.cli.run_options import NOT_GIVEN, CheckpointOptions, StoreOptions
from streaming.cli.usage import taking
from streaming.contract.output.columns import Column
from streaming.contract.output.text import counted
from streaming.job.options import JobOptions
from streaming.job.state_stores import STATE_STORES

if TYPE_CHECKING:
    from streaming.job.backups.rewriting import Rewritten
    from streaming.job.backups.verification import Verification

Place = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The place of the checkpoint: empty or missing.")]
Existing = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint, which no job uses.")]
AcceptsLosses = Annotated[bool, flag("--yes", "Continue although something is lost, or may be.")]
StatePartitions = Annotated[
    int | None, option(metavar="COUNT", text="The number of state partitions.", default="as before, or 1", min=1)
]
Store = Annotated[
    str | None,
    option(
        "--state-store",
        metavar="STORE",
        text="memory or rocksdb.",
        default="as before, or memory",
        values=tuple(STATE_STORES),
    ),
]

BATCH_COLUMNS = (
    *("TIME", "BATCH"),
    *(Column("FILES", rank=3), Column("BYTES", rank=1), Column("VERSION", rank=2)),
    "FOLDER",
)


@dataclass(frozen=True, kw_only=True)
class VerificationOptions(CheckpointOptions):
    """The same for a verification, which reads the journal."""

    timeout: Annotated[
        int,
        option(metavar="SECONDS", text="How long to wait for the journal's next records.", panel=KAFKA_PANEL, min=1),
    ] = 30


@with_options("given", StoreOptions)
def backup(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The job's checkpoint.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The folder of the backups.")],
    given: StoreOptions,
    keep: Annotated[
        int | None,
        option(metavar="COUNT", text="Remove the oldest backups beyond this number.", default="keep all", min=1),
    ] = None,
) -> None:
    """Copy the checkpoint as of its newest complete batch, also while the job runs.

    Each backup is a folder in TARGET that can be restored without the others. What TARGET's file system has already is
    linked instead of copied. A backup that is interrupted has no manifest, and the next one removes it. Either may be
    the URI of a store, such as s3a://bucket/backups; takes the options of run for it.
    """
    require("checkpoint backup", "job")
    from streaming.job.backups.remote.commands import back_up_at

    with errors_as_lines():
        options = given.load()
        taken = back_up_at(checkpoint, target, keep, datetime.now(UTC), options, progress(given.as_json))
    if given.as_json:
        print_json(taken)
    else:
        out.line(
            f"{taken.folder}: batch {taken.batch}, {counted(taken.files, 'file')}, {counted(taken.size, 'byte')}, "
            f"{taken.copied:,} copied"
        )


@with_options("given", StoreOptions)
def list_contents(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder of the backups, a backup or a checkpoint.")
    ],
    given: StoreOptions,
) -> None:
    """List the backups in a folder, or the batches that a checkpoint has. Needs no brokers, and changes nothing.

    For a store, such as s3a://bucket/backups, it takes the options of run.
    """
    require("checkpoint list", "job")
    from streaming.job.backups.remote.commands import batches_at

    with errors_as_lines():
        held = batches_at(folder, given.load(), err.line)
    if given.as_json:
        print_json(held)
        return
    rows = [
        (
            datetime.fromtimestamp(each.taken_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
            str(each.batch),
            *("-" if number is None else f"{number:,}" for number in (each.files, each.size)),
            each.version or "-",
            each.folder,
        )
        for each in held
    ]
    out.table(BATCH_COLUMNS, rows)


@with_options("given", VerificationOptions)
def verify(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A backup, or a checkpoint that no job uses.")],
    given: VerificationOptions,
) -> None:
    """Verify a backup or a checkpoint: every file is there, every group decodes, the journal agrees.

    The journal is compared if brokers are given. Takes the options of run, also from the environment and from a file.
    Changes nothing. Exit code 0: no difference; 1: at least one, each is a line.
    """
    require("checkpoint verify", "job")
    with given.errors_as_lines():
        options = given.load(folder)
        from streaming.job.backups.remote.commands import verify_at

        found = verify_at(folder, options, given.limit(options), progress(given.as_json))
    if given.as_json:
        print_json(found)
    else:
        _print_verification(found)
    if found.differences:
        raise typer.Exit(REFUSED)


def _print_verification(found: "Verification") -> None:
    for difference in found.differences:
        out.line(difference)
    if found.journal_entries is None:
        compared = "the journal was not compared"
    else:
        alone = found.groups - found.compared_in_full - found.compared_in_part
        compared = (
            f"{counted(found.journal_entries, 'entry', 'entries')} of the journal: "
            f"{counted(found.compared_in_full, 'group')} compared in full, "
            f"{found.compared_in_part} as far as the journal goes back, {alone} not in it"
        )
    out.line(f"batch {found.batch}: {counted(found.files, 'file')}, {counted(found.groups, 'group')}; {compared}")
    out.line(counted(len(found.differences), "difference") if found.differences else "no difference")


@with_options("given", CheckpointOptions)
def restore(
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="A finished backup.")],
    checkpoint: Place,
    given: CheckpointOptions,
    yes: AcceptsLosses = False,
) -> None:
    """Copy a backup into the place of the job's checkpoint, and compare every file with the manifest.

    First it says what is lost: the requests since the backup that their topic no longer has. Without brokers it cannot
    know. If something is lost, or may be, it needs --yes. A restore that is interrupted leaves the place as
    it was; the next one removes its files.
    """
    require("checkpoint restore", "job")
    with given.errors_as_lines():
        options = given.load(checkpoint)
        from streaming.job.backups.remote.commands import restore_at

        limit, report = given.limit(options), progress(given.as_json)
        done = restore_at(backup, checkpoint, options, limit, report, accepts_losses=yes)
    if given.as_json:
        print_json(done)
    else:
        out.line(
            f"{done.checkpoint}: batch {done.batch}, {counted(done.files, 'file')}, {counted(done.size, 'byte')}: "
            "start the job"
        )


@with_options("given", CheckpointOptions)
def rebuild(
    checkpoint: Place,
    given: CheckpointOptions,
    backup: Annotated[
        str | None, option(metavar="BACKUP", text="Begin with this backup, and add the journal after it.")
    ] = None,
    state_partitions: StatePartitions = None,
    state_store: Store = None,
    yes: AcceptsLosses = False,
) -> None:
    """Make a new checkpoint from the journal, if there is no backup or only one that is too old.

    First it says which groups the journal no longer has, or only in part; then it needs --yes. Members keep
    their ids and generations, and get new sessions. The job reads the last requests again, and applies those that the
    journal lacks. A rebuild that is interrupted leaves the place as it was.
    """
    require("checkpoint rebuild", "job")
    with given.errors_as_lines():
        fixed = {"state_partitions": state_partitions, "state_store": state_store}
        options = given.load(checkpoint, **fixed)
        if options.bootstrap_servers == NOT_GIVEN:
            fail("the journal is read from the brokers: -b is missing", USAGE)
        from streaming.job.backups.remote.commands import rebuild_at
        from streaming.job.backups.restoration import GO_ON

        limit, report = float(given.timeout), progress(given.as_json)
        done = rebuild_at(checkpoint, backup, options, limit, report, accepts_losses=yes)
    if given.as_json:
        print_json(done)
    if not done.is_written:
        fail(GO_ON, REFUSED)
    if not given.as_json:
        found = done.report
        partial = len(found.incomplete) + len(found.differing)
        summary = f"{counted(found.groups, 'group')}, {partial} of them in part, {len(found.lost)} lost"
        out.line(f"{done.checkpoint}: {summary}: start the job")


@with_options("given", CheckpointOptions)
def repartition(
    checkpoint: Existing,
    given: CheckpointOptions,
    state_partitions: Annotated[int, option(metavar="COUNT", text="The new number of state partitions.", min=1)],
) -> None:
    """Change the number of state partitions of a checkpoint that no job uses.

    The groups are written into a new checkpoint, which takes the place of the former one. That one is kept beside it,
    with the time in its name. If the command is interrupted, the former one is still in its place.
    With brokers, it refuses while a job is active.
    """
    require("checkpoint repartition", "job")
    with given.errors_as_lines():
        options = given.load(checkpoint)
        done = _rewritten(checkpoint, checkpoint, options, given, state_partitions=state_partitions)
    _print_rewritten(done, given.as_json)


@with_options("given", CheckpointOptions)
def migrate(
    checkpoint: Existing,
    given: CheckpointOptions,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The new place, empty or missing; or CHECKPOINT.")],
    state_store: Store = None,
) -> None:
    """Write the groups of a checkpoint that no job uses into a new one: in another place, or for another state store.

    The former checkpoint is kept: where it is, or, if both are the same place, beside it with the time in its name. If
    the command is interrupted, the former one is still in its place.
    With brokers, it refuses while a job is active.
    """
    require("checkpoint migrate", "job")
    with given.errors_as_lines():
        options = given.load(checkpoint, state_store=state_store)
        done = _rewritten(checkpoint, target, options, given, state_store=options.state_store)
    _print_rewritten(done, given.as_json)


@with_options("given", CheckpointOptions)
def downgrade(
    checkpoint: Existing,
    given: CheckpointOptions,
    to: Annotated[
        str,
        option(
            metavar="RELEASE",
            text=f"The earlier release: {', '.join(WRITERS_FOR_RELEASES)}.",
            values=tuple(WRITERS_FOR_RELEASES),
            callback=taking(EarlierRelease),
        ),
    ],
) -> None:
    """Write the groups of a checkpoint that no job uses in the format of an earlier release, whose job continues them.

    Groups keep their members, generations, offsets and open transactions. The former checkpoint is kept beside the new
    one, with the time in its name. If the command is interrupted, the former one is still in its place.
    With brokers, it refuses while a job is active.
    """
    require("checkpoint downgrade", "job")
    with given.errors_as_lines():
        options = given.load(checkpoint)
        done = _rewritten(checkpoint, checkpoint, options, given, release=to)
    if given.as_json:
        print_json(done)
    else:
        out.line(
            f"{done.checkpoint}: {counted(done.groups, 'group')} for {to}; the former checkpoint is {done.former}: "
            f"start the job of {to}"
        )


def _rewritten(source: str, target: str, options: JobOptions, given: CheckpointOptions, **changes: Any) -> "Rewritten":
    from streaming.job.backups.remote.commands import rewrite_at

    return rewrite_at(source, target, options, given.limit(options), progress(given.as_json), **changes)


def _print_rewritten(done: "Rewritten", as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    out.line(
        f"{done.checkpoint}: {counted(done.groups, 'group')}, state-partitions {done.state_partitions}, state-store "
        f"{done.state_store}; the former checkpoint is {done.former}"
    )
