"""``group-coordinator offsets commit`` and ``offsets delete``: set or delete the offsets of single partitions."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.errors import Error
from coordinator_logic.messages import ResetOffsetsRequest, ResetOffsetsResponse
from streaming.cli.commands.offsets.carrying_out import Execution, carry_out, send, setting_offsets
from streaming.cli.commands.offsets.reading import Selection, fetched_offsets, logs, required_logs, selected
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, USAGE, fail
from streaming.cli.group_selection import GroupId, require_group
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient
from streaming.explain.error_sentences import sentence_of
from streaming.explain.offsets.plan import Plan, Position, deletion
from streaming.explain.offsets.targets import plan_of_positions


@connected
@setting_offsets
def commit_offsets(
    connection: Connection,
    execution: Execution,
    group: GroupId,
    position: Annotated[
        list[str], typer.Argument(metavar="TOPIC:PARTITION=OFFSET...", help="The offset of each partition.")
    ],
    metadata: Annotated[str, typer.Option(metavar="TEXT", help="Free text to store with the offsets.")] = "",
) -> None:
    """Set the offsets of single partitions: show what would happen to each, and do it with --execute.

    A group that does not exist is created. An offset outside of the log becomes the nearest one in it.
    """
    wanted = positions_given(position, metadata)
    with connection.client() as client:

        def plan() -> Plan:
            known = required_logs(connection, client, wanted)
            return plan_of_positions(group, wanted, fetched_offsets(client, group), known)

        carry_out(connection, client, plan, execution)


@connected
@setting_offsets
def delete_offsets(
    connection: Connection,
    execution: Execution,
    group: GroupId,
    topic: Annotated[
        list[str],
        option(metavar="TOPIC[:PARTITIONS]", text="Offsets to delete, such as orders or orders:0,2-5. Repeatable."),
    ],
) -> None:
    """Delete committed offsets: show which, and do it with --execute. The topics may no longer exist.

    If the group has members, the offsets of topics to which they subscribe are refused without --force.
    """
    selections = [selected(each, "--topic") for each in topic]
    with connection.client() as client:
        require_group(client, group)

        def plan() -> Plan:
            now = fetched_offsets(client, group)
            chosen = _chosen(group, selections, now)
            return deletion(group, chosen, now, logs(connection, client, chosen))

        carry_out(connection, client, plan, execution, _send_deletion)


def positions_given(arguments: Sequence[str], metadata: str) -> dict[TopicPartition, Position]:
    """Parse ``TOPIC:PARTITION=OFFSET`` arguments."""
    positions: dict[TopicPartition, Position] = {}
    for argument in arguments:
        target, _, offset = argument.rpartition("=")
        topic, _, number = target.rpartition(":")
        if not (topic and number.isdecimal() and offset.isdecimal()):
            fail(f"{argument!r} is not TOPIC:PARTITION=OFFSET", USAGE)
        partition = TopicPartition(topic, int(number))
        if partition in positions:
            fail(f"{target} is given twice", USAGE)
        positions[partition] = Position(int(offset), metadata=metadata)
    return positions


def _chosen(group: str, selections: Iterable[Selection], committed: Iterable[TopicPartition]) -> set[TopicPartition]:
    """The committed partitions that are selected; a selection without any ends the command."""
    chosen: set[TopicPartition] = set()
    for topic, numbers in selections:
        found = {each for each in committed if each.topic == topic and (numbers is None or each.partition in numbers)}
        if not found:
            partitions = topic if numbers is None else f"{topic}:{','.join(map(str, numbers))}"
            fail(f"{group} has no committed offset of {partitions}", REFUSED)
        chosen |= found
    return chosen


def _send_deletion(
    connection: Connection, client: CoordinatorClient, request: ResetOffsetsRequest, execution: Execution
) -> ResetOffsetsResponse:
    """Delete as a reset does, which undo brings back; of a group with members, as Kafka's OffsetDelete does."""
    (described,) = client.describe_any([request.group_id])
    if execution.force or not described.members:
        return send(connection, client, request, execution)
    partitions = [
        TopicPartition(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]
    answer = client.delete_offsets(request.group_id, partitions)
    refused = [(topic.name, each.error_code) for topic in answer.topics for each in topic.partitions if each.error_code]
    for topic, code in refused:
        if code == Error.GROUP_SUBSCRIBED_TO_TOPIC:
            fail(f"{request.group_id} subscribes to {topic}: stop its members first, or use --force", REFUSED)
        fail(f"{topic}: {sentence_of(code, request.group_id)}", REFUSED)
    return ResetOffsetsResponse()
