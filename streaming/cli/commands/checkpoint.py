"""``group-coordinator checkpoint``: take a backup of the job's checkpoint, and verify a checkpoint or a backup."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli.commands.doctor import NOT_GIVEN
from streaming.cli.console import (
    KAFKA_PANEL,
    REFUSED,
    UNANSWERED,
    AnyOption,
    AsJson,
    Brokers,
    ConfigurationFile,
    Prefix,
    err,
    fail,
    failures_as_lines,
    key_values,
    out,
    print_json,
    require,
)
from streaming.cli.help_output import option
from streaming.client.errors import CoordinatorError
from streaming.contract.errors import CannotRun
from streaming.job.options import load_options

if TYPE_CHECKING:
    from streaming.job.backups.placement import Report
    from streaming.job.backups.verification import Verification


def backup(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The job's checkpoint, a local folder.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The folder of the backups.")],
    keep: Annotated[
        int | None,
        option(metavar="COUNT", text="Remove the oldest backups beyond this number.", default="keep all", min=1),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the checkpoint as of its newest complete batch, also while the job runs.

    Each backup is a folder in TARGET that can be restored without the others. What TARGET's file system has already is
    linked instead of copied. A backup that is interrupted has no manifest, and the next one removes it.
    """
    require("checkpoint backup", "job")
    from streaming.job.backups.backup import back_up

    with failures_as_lines():
        taken = back_up(local_folder(checkpoint), local_folder(target), keep, datetime.now(UTC), progress(as_json))
    if as_json:
        print_json(taken)
    else:
        print_line(
            f"{taken.folder}: batch {taken.batch}, {taken.files} files, {taken.size} bytes, {taken.copied} copied"
        )


def verify(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A backup, or a checkpoint that no job uses.")],
    bootstrap_servers: Brokers = None,
    topic_prefix: Prefix = None,
    timeout: Annotated[
        int,
        option(metavar="SECONDS", text="How long to wait for the journal's next records.", panel=KAFKA_PANEL, min=1),
    ] = 30,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: AsJson = False,
) -> None:
    """Verify a backup or a checkpoint: every file is there, every group decodes, the journal agrees.

    The journal is compared if brokers are given. Takes the options of run, also from the environment and from a file.
    Changes nothing. Exit code 0: no difference; 1: at least one, each is a line.
    """
    require("checkpoint verify", "job")
    flags: dict[str, object] = {
        "bootstrap_servers": bootstrap_servers,
        "topic_prefix": topic_prefix,
        "checkpoint": folder,
        **key_values(settings, "--set"),
    }
    with failures_as_lines():
        options = load_options(flags, os.environ, config, {"bootstrap-servers": NOT_GIVEN})
        from streaming.job.backups.verification import verify as verify_folder

        journal_timeout = None if options.bootstrap_servers == NOT_GIVEN else float(timeout)
        try:
            found = verify_folder(local_folder(folder), options, journal_timeout, progress(as_json))
        except CoordinatorError as error:
            fail(error.message, UNANSWERED)
    if as_json:
        print_json(found)
    else:
        _print_verification(found)
    if found.differences:
        raise typer.Exit(REFUSED)


def _print_verification(found: "Verification") -> None:
    for difference in found.differences:
        print_line(difference)
    if found.journal_entries is None:
        compared = "the journal was not compared"
    else:
        alone = found.groups - found.compared_in_full - found.compared_in_part
        compared = (
            f"{found.journal_entries} entries of the journal: {found.compared_in_full} groups compared in full, "
            f"{found.compared_in_part} as far as the journal goes back, {alone} not in it"
        )
    print_line(f"batch {found.batch}: {found.files} files, {found.groups} groups; {compared}")
    print_line(f"{len(found.differences)} difference(s)" if found.differences else "no difference")


def local_folder(location: str) -> Path:
    """The folder that an argument names. Raises CannotRun for another file system."""
    from streaming.job.checkpoints.local_folder import local_path

    folder = local_path(location)
    if folder is None:
        raise CannotRun(
            f"{location} is not a local folder: checkpoints and backups are read and written on local file systems only"
        )
    return folder


def progress(as_json: bool) -> "Report":
    """Prints progress; to standard error where standard output is JSON."""
    return _print_progress if as_json else print_line


def print_line(line: str) -> None:
    """Print a line as it is."""
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_progress(line: str) -> None:
    err.print(line, markup=False, highlight=False, soft_wrap=True)
