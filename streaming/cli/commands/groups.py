"""``group-coordinator groups``: list, describe and delete groups."""

from typing import Annotated

import typer
from rich.table import Table

from coordinator_logic.consumer_protocol import ConsumerProtocolError, decode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.messages import DescribedGroup, DescribedMember
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, fail, out, print_json
from streaming.client.errors import error_of

GroupIds = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Group ids.")]


@connected
def list_groups(
    connection: Connection,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="Only groups in this state, for example Stable. Repeatable."),
    ] = None,
    group_type: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only groups of this type. Repeatable.")
    ] = None,
) -> None:
    """List all groups, as the coordinator's directory topic has them."""
    with connection.client() as client:
        listing = client.list_groups(state or (), group_type or ())
    if connection.as_json:
        print_json(listing.groups)
        return
    table = Table("GROUP", "STATE", "TYPE", "PROTOCOL TYPE")
    for group in listing.groups:
        table.add_row(group.group_id, group.group_state, group.group_type, group.protocol_type or "-")
    out.print(table)


@connected
def describe_groups(connection: Connection, group: GroupIds) -> None:
    """Show the state and protocol of groups, and each member with its assignment."""
    with connection.client() as client:
        described = client.describe_groups(group).groups
    if connection.as_json:
        print_json(described)
    else:
        for entry in described:
            print_group(entry)
    exit_on_errors({entry.group_id: entry.error_code for entry in described})


def print_group(group: DescribedGroup) -> None:
    """Print a group as a headline and a table of its members."""
    if group.error_code:
        return
    protocol = f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"
    out.print(f"[bold]{group.group_id}[/bold]: {group.group_state} ({protocol}), {len(group.members)} member(s)")
    if not group.members:
        return
    table = Table("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT")
    for member in group.members:
        instance = member.group_instance_id or "-"
        assignment = describe_assignment(group.protocol_type, member)
        table.add_row(member.member_id, instance, member.client_id, member.client_host, assignment)
    out.print(table)


def describe_assignment(protocol_type: str, member: DescribedMember) -> str:
    """A consumer's assignment as ``topic: 0, 1``; an assignment of any other protocol type by its size."""
    assignment = member.member_assignment
    if not assignment:
        return "-"
    if protocol_type != "consumer":
        return f"{len(assignment)} bytes"
    try:
        partitions = decode_assignment(assignment).partitions
    except ConsumerProtocolError:
        return f"{len(assignment)} bytes, unreadable"
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(partition))
    return "\n".join(f"{topic}: {', '.join(numbers)}" for topic, numbers in by_topic.items()) or "-"


@connected
def delete_groups(connection: Connection, group: GroupIds) -> None:
    """Delete groups that have no members, with their committed offsets."""
    with connection.client() as client:
        results = client.delete_groups(group).results
    if connection.as_json:
        print_json(results)
    else:
        for result in results:
            if not result.error_code:
                out.print(f"{result.group_id}: deleted")
    exit_on_errors({result.group_id: result.error_code for result in results})


def exit_on_errors(error_codes: dict[str, int]) -> None:
    """Exit with code 1, naming the error of each failed entry; return when no entry failed."""
    failed = {name: error_of(code).name for name, code in error_codes.items() if code != Error.NONE}
    if failed:
        fail("; ".join(f"{name}: {error}" for name, error in failed.items()), REFUSED)
