"""``group-coordinator groups``: list, describe, delete and configure groups."""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any

import typer

from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups as filtered
from coordinator_logic.messages import DeletedGroup, DescribedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import JournalEntry
from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import REFUSED, PointInTime, err, fail, key_values, out, print_json, time_given
from streaming.cli.group_selection import (
    STATES,
    TYPE_NAMES,
    GroupId,
    GroupPatterns,
    completed_ids,
    is_pattern,
    known_groups,
    matches,
    named_groups,
    require_group,
    valid_filter,
)
from streaming.cli.group_types import MEMBER_TABLES
from streaming.client import CoordinatorClient
from streaming.client.errors import CoordinatorError, error_of
from streaming.client.group_types import AnyDescribedGroup, type_of
from streaming.contract.output.columns import Column
from streaming.contract.output.text import counted
from streaming.explain.error_sentences import members_sentence, sentence_of, sentence_of_failure
from streaming.explain.live.group import headline
from streaming.explain.live.group_types import description_of
from streaming.explain.live.partitions import NOTE, PARTITION_TABLE, PartitionNow, partitions_now
from streaming.explain.time_travel.group_history import GroupAt
from streaming.explain.time_travel.journal_groups import described_at, directory_entry_at, groups_at
from streaming.journal.folded_group import Known
from streaming.journal.reader import journal_entries

Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=VALUE]...", help="Values to set, for example consumer.session.timeout.ms=60000."),
]

GROUP_COLUMNS = ("GROUP", "STATE", Column("TYPE", rank=1), Column("PROTOCOL TYPE", rank=2))


@connected
def list_groups(
    connection: Connection,
    group: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GROUP]...",
            help="Only these groups: ids, or patterns such as 'billing-*'.",
            autocompletion=completed_ids,
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help=f"Only groups in this state: {', '.join(STATES)}. Repeatable.",
            autocompletion=lambda: list(STATES),
        ),
    ] = None,
    group_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"Only groups of this type: {', '.join(TYPE_NAMES)}. Repeatable.",
            autocompletion=lambda: list(TYPE_NAMES),
        ),
    ] = None,
    at: PointInTime = None,
) -> None:
    """List groups from the coordinator's directory topic, or with --at from the journal.

    If the journal no longer has the members of a group, its state is Unknown.
    """
    states, types = valid_filter(state, "--state", STATES), valid_filter(group_type, "--type", TYPE_NAMES)
    if at is None:
        with connection.client() as client:
            listing = client.list_groups(states, types)
    else:
        listing = _listed_at(connection, at, ListGroupsRequest(states, types))
    groups = [each for each in listing.groups if matches(each.group_id, group or ())]
    if connection.as_json:
        print_json(groups)
        return
    rows = [(each.group_id, each.group_state, each.group_type, each.protocol_type or "-") for each in groups]
    out.table(GROUP_COLUMNS, rows)


@connected
def describe_groups(connection: Connection, group: GroupPatterns, at: PointInTime = None) -> None:
    """Show the state and protocol of groups, each member with its assignment, and the lag of each partition.

    For a consumer group (KIP-848), it also shows the epochs, which partitions each member has yet to revoke or to get,
    and which members it waits for. END is the log end offset, OWNER the member that has the partition.

    --at shows groups as of a time, from the journal and without lag. If the journal no longer has the members of a
    group, its state is Unknown.
    """
    partitions: dict[str, list[PartitionNow]] = {}
    if at is None:
        with connection.client() as client:
            described = client.describe_any(named_groups(group, known_groups(client)))
            partitions = partitions_now(client, described, connection.timeout)
    else:
        described = _described_at(connection, at, group)
    if connection.as_json:
        print_json([_as_json(entry, partitions.get(entry.group_id)) for entry in described])
    else:
        for entry in described:
            print_group(entry)
            print_partitions(partitions.get(entry.group_id, ()))
    exit_on_errors({entry.group_id: entry.error_code for entry in described})


def _as_json(group: AnyDescribedGroup, partitions: Iterable[PartitionNow] | None) -> dict[str, Any]:
    data = description_of(type_of(group)).data(group)
    if partitions is None:
        return data
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "committedOffset": None if each.committed is None else each.committed.offset,
            **each.figures(),
        }
        for each in partitions
    ]
    return {**data, "partitions": rows}


def _listed_at(connection: Connection, at: str, request: ListGroupsRequest) -> ListGroupsResponse:
    found = _groups_at(connection, at, None)
    return filtered([directory_entry_at(each) for each in found.values()], request)


def _described_at(connection: Connection, at: str, arguments: Sequence[str]) -> list[AnyDescribedGroup]:
    found = _groups_at(connection, at, None if any(map(is_pattern, arguments)) else arguments)
    return [
        described_at(found[group_id]) if group_id in found else DescribedGroup(group_id, Error.GROUP_ID_NOT_FOUND)
        for group_id in named_groups(arguments, found.keys)
    ]


def _groups_at(connection: Connection, at: str, group_ids: Collection[str] | None) -> dict[str, GroupAt]:
    time = time_given(at, "--at")
    topic = connection.topics.journal

    def journal() -> Iterable[JournalEntry | None]:
        return journal_entries(connection.reader_config, topic, connection.timeout, client_id=CLIENT_ID)

    with connection.errors_as_lines():
        found = groups_at(journal, time, group_ids)
    if partly := sum(each.known is not Known.ALL for each in found.values()):
        are = "is" if partly == 1 else "are"
        err.line(f"{counted(partly, 'group')} {are} older than {topic}: members or offsets may be missing")
    return found


@connected
def delete_groups(
    connection: Connection,
    group: GroupPatterns,
    execute: Annotated[
        bool | None,
        typer.Option(
            "--execute/--dry-run",
            help="Delete the groups, or only show them.",
            show_default="a pattern is only shown",
        ),
    ] = None,
) -> None:
    """Delete groups that have no members, with their committed offsets.

    A group that is named by its id is deleted at once. A pattern shows the groups that it matches, and deletes them
    with --execute.
    """
    with connection.client() as client:
        group_ids = named_groups(group, known_groups(client))
        is_executed = set(group_ids) <= set(group) if execute is None else execute
        if is_executed:
            _delete(connection, client, group_ids)
        else:
            _show_deletion(connection, client, group_ids)


def _show_deletion(connection: Connection, client: CoordinatorClient, group_ids: Sequence[str]) -> None:
    described = client.describe_any(group_ids)
    exit_on_errors({each.group_id: each.error_code for each in described})
    if connection.as_json:
        shown = [(each.group_id, each.group_state, len(each.members)) for each in described]
        print_json([{"groupId": name, "groupState": state, "members": members} for name, state, members in shown])
        return
    out.table(
        ("GROUP", "STATE", "MEMBERS"), [(each.group_id, each.group_state, str(len(each.members))) for each in described]
    )
    out.line(f"Nothing was deleted: this was a dry run. --execute deletes {counted(len(described), 'group')}.")


def _delete(connection: Connection, client: CoordinatorClient, group_ids: Sequence[str]) -> None:
    results = client.delete_groups(group_ids).results
    if connection.as_json:
        print_json(results)
    else:
        for result in results:
            if not result.error_code:
                out.line(f"{result.group_id}: deleted")
    if refused := [result for result in results if result.error_code]:
        fail("; ".join(_why_not_deleted(client, refused)), REFUSED)


def _why_not_deleted(client: CoordinatorClient, refused: Sequence[DeletedGroup]) -> Iterable[str]:
    busy = [each.group_id for each in refused if each.error_code == Error.NON_EMPTY_GROUP]
    members = {each.group_id: len(each.members) for each in client.describe_any(busy)}
    for each in refused:
        if count := members.get(each.group_id):
            yield members_sentence(each.group_id, count)
        else:
            yield sentence_of(each.error_code, each.group_id)


@connected
def configure_group(connection: Connection, group: GroupId, changes: Changes = None) -> None:
    """Show or change the settings of one consumer group: session timeout, heartbeat interval and assignment interval.

    NAME= removes a value; the coordinator's default then applies. Members get a change with their next heartbeat.
    """
    wanted = {name: value or None for name, value in key_values(changes, "a change").items()}
    with connection.client() as client:
        try:
            configs = client.set_group_config(group, wanted)
        except CoordinatorError as failure:
            fail(failure.reason or sentence_of_failure(failure), REFUSED)
        if not (wanted or configs):
            require_group(client, group)
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


def print_partitions(partitions: Iterable[PartitionNow]) -> None:
    """Print the offsets, the lag and the owner of each partition; nothing without any."""
    rows = [(*each.cells(), each.note) for each in partitions]
    if rows:
        out.table((*PARTITION_TABLE, NOTE), rows)


def exit_on_errors(error_codes: dict[str, int]) -> None:
    """Exit with code 1, saying what is wrong with each group whose entry failed; return when none failed."""
    failed = {group_id: code for group_id, code in error_codes.items() if error_of(code) is not Error.NONE}
    if failed:
        fail("; ".join(sentence_of(code, group_id) for group_id, code in failed.items()), REFUSED)
