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
    from streaming.job.backups.verification import Report, Verification


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
        taken = back_up(_local(checkpoint), _local(target), keep, datetime.now(UTC), _reporter(as_json))
    if as_json:
        print_json(taken)
    else:
        _print(f"{taken.folder}: batch {taken.batch}, {taken.files} files, {taken.size} bytes, {taken.copied} copied")


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
            found = verify_folder(_local(folder), options, journal_timeout, _reporter(as_json))
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
        _print(difference)
    if found.journal_entries is None:
        compared = "the journal was not compared"
    else:
        alone = found.groups - found.compared_in_full - found.compared_in_part
        compared = (
            f"{found.journal_entries} entries of the journal: {found.compared_in_full} groups compared in full, "
            f"{found.compared_in_part} as far as the journal goes back, {alone} not in it"
        )
    _print(f"batch {found.batch}: {found.files} files, {found.groups} groups; {compared}")
    _print(f"{len(found.differences)} difference(s)" if found.differences else "no difference")


def _local(location: str) -> Path:
    from streaming.job.checkpoints.location import local_path

    folder = local_path(location)
    if folder is None:
        raise CannotRun(f"{location} is not a local folder: backups are taken and verified on local file systems only")
    return folder


def _reporter(as_json: bool) -> "Report":
    """Prints progress; to standard error where standard output is JSON."""
    return _print_progress if as_json else _print


def _print(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_progress(line: str) -> None:
    err.print(line, markup=False, highlight=False, soft_wrap=True)
