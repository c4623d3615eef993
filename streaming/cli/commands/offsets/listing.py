"""``group-coordinator offsets list``: the committed offsets of a group, and how far they are behind."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import FetchedGroup, GroupToFetch
from streaming.cli.commands.groups import exit_on_errors
from streaming.cli.connection import Connection, connected
from streaming.cli.console import out, print_json
from streaming.cli.group_selection import GroupId
from streaming.contract.output.columns import Column
from streaming.explain.live.group_types import Holder
from streaming.explain.live.partitions import NOTE, PARTITION_TABLE, Logs, PartitionNow, holders_of, read_logs, row_of
from streaming.explain.offsets.plan import Position

OFFSET_COLUMNS = (*PARTITION_TABLE, Column("LEADER EPOCH", rank=5), Column("METADATA", rank=4), NOTE)


@connected
def list_offsets(connection: Connection, group: GroupId) -> None:
    """List every offset that a group has committed, with its lag.

    END is the log end offset, OWNER the member that has the partition.
    """
    with connection.client() as client:
        fetched = client.offset_fetch([GroupToFetch(group)]).groups[0]
        (described,) = client.describe_any([group])
        exit_on_errors({group: fetched.error_code or (0 if fetched.topics else described.error_code)})
        held = {} if described.error_code else holders_of(described)
        places = {
            TopicPartition(topic.name, each.partition_index) for topic in fetched.topics for each in topic.partitions
        }
        logs = read_logs(client, places, connection.timeout)
    if connection.as_json:
        print_json(_as_json(fetched, held, logs))
    else:
        _print_offsets(sorted(_rows(fetched, held, logs), key=lambda row: row.partition))


def _rows(fetched: FetchedGroup, held: Mapping[TopicPartition, Holder], logs: Logs) -> Iterator[PartitionNow]:
    """A row for each committed offset in the order of the answer; a topic may be there under two ids."""
    for topic in fetched.topics:
        for found in topic.partitions:
            partition = TopicPartition(topic.name, found.partition_index)
            position = Position(
                found.committed_offset, found.committed_leader_epoch, found.metadata, topic_id=topic.topic_id
            )
            yield row_of(partition, position, held.get(partition), logs)


def _as_json(fetched: FetchedGroup, held: Mapping[TopicPartition, Holder], logs: Logs) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(fetched)
    partitions = (partition for topic in data["topics"] for partition in topic["partitions"])
    for partition, row in zip(partitions, _rows(fetched, held, logs), strict=True):
        partition.update(row.figures())
    return data


def _print_offsets(rows: list[PartitionNow]) -> None:
    cells = []
    for row in rows:
        assert row.committed is not None
        epoch = "-" if row.committed.leader_epoch < 0 else str(row.committed.leader_epoch)
        cells.append((*row.cells(), epoch, row.committed.metadata, row.note))
    out.table(OFFSET_COLUMNS, cells)
