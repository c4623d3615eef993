"""``group-coordinator offsets export`` and ``offsets import``."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.cli.commands.offsets.carrying_out import Execution, carry_out, setting_offsets
from streaming.cli.commands.offsets.reading import (
    fetched_offsets,
    of_present_topics,
    offsets_as_of,
    offsets_of_existing,
    required_logs,
)
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, USAGE, fail, out, print_json, require, time_given, write_file
from streaming.cli.group_selection import GroupId
from streaming.cli.help_output import option
from streaming.cli.usage import file_to_write
from streaming.contract.output.plain import print_file
from streaming.contract.output.text import counted
from streaming.explain.offsets.files import FileFormat, UnreadableOffsetsFile, decoded, encoded, format_of
from streaming.explain.offsets.plan import Position
from streaming.explain.offsets.targets import plan_of_positions


@connected
def export_offsets(
    connection: Connection,
    group: GroupId,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            metavar="FILE",
            text="A .csv, .json or .parquet file; without it, CSV is printed.",
            callback=file_to_write,
        ),
    ] = None,
    as_of: Annotated[
        str | None, option("--as-of", metavar="TIME", text="As of this time, or an age such as 2h; by default now.")
    ] = None,
) -> None:
    """Write the committed offsets of a group to a file, or print them."""
    file_format = FileFormat.CSV if output is None else _format(output)
    if as_of is None:
        with connection.client() as client:
            offsets = offsets_of_existing(client, group)
    else:
        with connection.errors_as_lines():
            ((offsets, _),) = offsets_as_of(connection, group, [time_given(as_of, "--as-of")])
    content = encoded(offsets, file_format)
    if output is None:
        print_file(content.decode())
        return
    write_file(output, content)
    if connection.as_json:
        print_json({"groupId": group, "file": str(output), "offsets": len(offsets)})
    else:
        out.line(f"{group}: {counted(len(offsets), 'offset')} written to {output}")


@connected
@setting_offsets
def import_offsets(
    connection: Connection,
    execution: Execution,
    group: GroupId,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .csv, .json or .parquet file.")],
) -> None:
    """Set the offsets of a group to those in a file, as export or Kafka's own tool has written them.

    Partitions that the file does not name are left alone.
    """
    wanted = positions_in(file)
    with connection.client() as client:
        known = required_logs(connection, client, wanted)
        present = of_present_topics(wanted, known)
        carry_out(
            connection,
            client,
            lambda: plan_of_positions(group, present, fetched_offsets(client, group), known),
            execution,
        )


def positions_in(file: Path) -> dict[TopicPartition, Position]:
    """The offsets in a file; one that cannot be read ends the command."""
    file_format = _format(file)
    try:
        return decoded(file.read_bytes(), file_format)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}", REFUSED)
    except UnreadableOffsetsFile as error:
        fail(f"{file}: {error}", REFUSED)


def _format(file: Path) -> FileFormat:
    try:
        file_format = format_of(file)
    except ValueError as error:
        fail(str(error), USAGE)
    if file_format is FileFormat.PARQUET:
        require("offsets export", "job")
    return file_format
