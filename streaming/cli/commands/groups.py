"""``group-coordinator groups``: list, describe, delete and configure groups."""

from collections.abc import Collection, Iterable
from typing import Annotated

import typer

from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups as filtered
from coordinator_logic.messages import DescribedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import JournalEntry
from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import REFUSED, PointInTime, err, fail, key_values, out, print_json, time_given
from streaming.cli.group_types import MEMBER_TABLES
from streaming.client.errors import CoordinatorError, error_of
from streaming.client.group_types import AnyDescribedGroup, type_of
from streaming.explain.live.group import headline
from streaming.explain.time_travel.group_history import GroupAt
from streaming.explain.time_travel.journal_groups import described_at, directory_entry_at, groups_at
from streaming.journal.folded_group import Known
from streaming.journal.reader import journal_entries

GroupIds = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Group ids.")]
GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=VALUE]...", help="Values to set, for example consumer.session.timeout.ms=60000."),
]


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
    at: PointInTime = None,
) -> None:
    """List all groups, as the coordinator's directory topic has them, or with --at as the journal tells them.

    Where the journal no longer has the members of a group, its state is Unknown.
    """
    if at is None:
        with connection.client() as client:
            listing = client.list_groups(state or (), group_type or ())
    else:
        listing = _listed_at(connection, at, ListGroupsRequest(list(state or ()), list(group_type or ())))
    if connection.as_json:
        print_json(listing.groups)
        return
    rows = [(each.group_id, each.group_state, each.group_type, each.protocol_type or "-") for each in listing.groups]
    out.table(("GROUP", "STATE", "TYPE", "PROTOCOL TYPE"), rows)


@connected
def describe_groups(connection: Connection, group: GroupIds, at: PointInTime = None) -> None:
    """Show the state and protocol of groups, and each member with its assignment.

    Of a consumer group (KIP-848) it shows the epochs, what each member has yet to revoke or to get, and for whom it
    waits.

    With --at, as the journal tells them. Where it no longer has the members of a group, the state is Unknown.
    """
    if at is None:
        with connection.client() as client:
            described = client.describe_any(group)
    else:
        described = _described_at(connection, at, group)
    if connection.as_json:
        print_json(described)
    else:
        for entry in described:
            print_group(entry)
    exit_on_errors({entry.group_id: entry.error_code for entry in described})


def _listed_at(connection: Connection, at: str, request: ListGroupsRequest) -> ListGroupsResponse:
    found = _groups_at(connection, at, None)
    return filtered([directory_entry_at(each) for each in found.values()], request)


def _described_at(connection: Connection, at: str, group_ids: Collection[str]) -> list[AnyDescribedGroup]:
    found = _groups_at(connection, at, group_ids)
    return [
        described_at(found[group_id]) if group_id in found else DescribedGroup(group_id, Error.GROUP_ID_NOT_FOUND)
        for group_id in group_ids
    ]


def _groups_at(connection: Connection, at: str, group_ids: Collection[str] | None) -> dict[str, GroupAt]:
    time = time_given(at, "--at")
    topic = connection.topics.journal

    def journal() -> Iterable[JournalEntry | None]:
        return journal_entries(connection.reader_config, topic, connection.timeout, client_id=CLIENT_ID)

    with connection.errors_as_lines():
        found = groups_at(journal, time, group_ids)
    if partly := sum(each.known is not Known.ALL for each in found.values()):
        err.line(f"{partly} group(s) are older than {topic}: members or offsets may be missing")
    return found


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
                out.line(f"{result.group_id}: deleted")
    exit_on_errors({result.group_id: result.error_code for result in results})


@connected
def configure_group(connection: Connection, group: GroupId, changes: Changes = None) -> None:
    """Show or change what a consumer group has of its own: session timeout, heartbeat and assignment interval.

    NAME= removes a value; the coordinator's own then holds again. Members get a change with their next heartbeat.
    """
    wanted = {name: value or None for name, value in key_values(changes, "a change").items()}
    with connection.client() as client:
        try:
            configs = client.set_group_config(group, wanted)
        except CoordinatorError as failure:
            fail(failure.message, REFUSED)
    if connection.as_json:
        print_json(configs)
        return
    out.table(("NAME", "VALUE"), configs.items())


def print_group(group: AnyDescribedGroup) -> None:
    """Print a group as a headline and a table of its members."""
    if group.error_code:
        return
    name, rest = headline(group)
    out.line((name, "bold"), rest)
    if group.members:
        members = MEMBER_TABLES[type_of(group)]
        out.table(members.columns, members.rows(group))


def exit_on_errors(error_codes: dict[str, int]) -> None:
    """Exit with code 1, naming the error of each failed entry; return when no entry failed."""
    failed = {name: error_of(code).name for name, code in error_codes.items() if code != Error.NONE}
    if failed:
        fail("; ".join(f"{name}: {error}" for name, error in failed.items()), REFUSED)
