"""``group-coordinator groups quarantine``: groups whose stored state the coordinator cannot read."""

from pathlib import Path
from typing import Annotated

from coordinator_logic.apis import DROP_QUARANTINED_GROUP, READ_QUARANTINED_GROUP
from coordinator_logic.messages import (
    DropQuarantinedGroupRequest,
    ReadQuarantinedGroupRequest,
    ReadQuarantinedGroupResponse,
)
from coordinator_logic.records import QUARANTINED
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, fail, out, print_json, write_file
from streaming.cli.group_selection import QuarantinedGroupId
from streaming.cli.help_output import option
from streaming.cli.usage import file_to_write
from streaming.client import CoordinatorClient
from streaming.client.directory import read_directory
from streaming.contract.output.text import counted

PAGE_BYTES = 512 * 1024

ExportFile = Annotated[
    Path,
    option(
        "--output",
        "-o",
        metavar="FILE",
        text="The file to write.",
        callback=file_to_write,
    ),
]
Reason = Annotated[str, option(metavar="TEXT", text="Why the state is dropped, for the journal.")]


@connected
def list_quarantined(connection: Connection) -> None:
    """List the quarantined groups: those whose stored state the coordinator cannot read.

    A group appears as soon as it has had a request.
    """
    with connection.client() as client:
        entries = read_directory(
            client.bootstrap_servers, client.topics.directory, client.client_id, client.config, connection.timeout
        )
    groups = [entry.group_id for entry in entries if entry.group_state == QUARANTINED]
    if connection.as_json:
        print_json(groups)
        return
    out.table(("GROUP",), [[group] for group in groups])


@connected
def show_quarantined(connection: Connection, group: QuarantinedGroupId) -> None:
    """Show why a group is quarantined, and the format version and the size of its stored state."""
    with connection.client() as client:
        read = _read(client, group)
    if connection.as_json:
        print_json({"group": group, "reason": read.reason, "formatVersion": read.format_version, "size": read.size})
        return
    out.line(f"{group}: {read.reason}")
    out.line(f"format version {read.format_version}, {counted(read.size, 'byte')}")


@connected
def export_quarantined(connection: Connection, group: QuarantinedGroupId, output: ExportFile) -> None:
    """Write the stored state of a quarantined group to a file; the group keeps it."""
    stored = bytearray()
    with connection.client() as client:
        while len(stored) < (page := _read(client, group, len(stored), PAGE_BYTES)).size:
            if not page.data:
                fail(f"{group}: the coordinator sent {len(stored)} of {counted(page.size, 'byte')}", REFUSED)
            stored += page.data
    write_file(output, bytes(stored))
    if connection.as_json:
        print_json({"group": group, "file": str(output), "size": len(stored)})
    else:
        out.line(f"{group}: {counted(len(stored), 'byte')} written to {output}")


@connected
def drop_quarantined(connection: Connection, group: QuarantinedGroupId, reason: Reason = "") -> None:
    """Drop the stored state of a quarantined group, with its committed offsets; the group can then be used again.

    Export it first, to be able to examine it. A group that is not quarantined is refused.
    """
    with connection.client() as client:
        dropped = client.ask(DROP_QUARANTINED_GROUP, group, DropQuarantinedGroupRequest(reason)).result()
        if dropped.body is not None and dropped.body.error_code:
            fail(f"{dropped.body.error_message}", REFUSED)
        dropped.unwrap()
    if connection.as_json:
        print_json({"group": group, "dropped": True})
    else:
        out.line(f"{group}: dropped")


def _read(client: CoordinatorClient, group: str, offset: int = 0, length: int = 0) -> ReadQuarantinedGroupResponse:
    """Read a page of the stored state; an error of the group ends the command."""
    answer = client.ask(READ_QUARANTINED_GROUP, group, ReadQuarantinedGroupRequest(offset, length)).result()
    if answer.body is not None and answer.body.error_code:
        fail(f"{answer.body.error_message}", REFUSED)
    return answer.unwrap()
