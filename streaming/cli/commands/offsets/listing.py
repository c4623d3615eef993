"""``group-coordinator offsets list`` and ``offsets commit``."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from coordinator_logic.messages import (
    FetchedGroup,
    GroupToFetch,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from streaming.cli.commands.groups import GroupId, exit_on_errors
from streaming.cli.commands.offsets.reading import cluster_topics
from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, fail, out, print_json


@connected
def list_offsets(connection: Connection, group: GroupId) -> None:
    """List every offset that a group has committed."""
    with connection.client() as client:
        fetched = client.offset_fetch([GroupToFetch(group)]).groups[0]
    if connection.as_json:
        print_json(fetched)
    elif not fetched.error_code:
        _print_offsets(fetched)
    exit_on_errors({group: fetched.error_code})


def _print_offsets(fetched: FetchedGroup) -> None:
    rows = []
    for topic in sorted(fetched.topics, key=lambda topic: topic.name):
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            epoch = "-" if partition.committed_leader_epoch < 0 else str(partition.committed_leader_epoch)
            index, offset = str(partition.partition_index), str(partition.committed_offset)
            rows.append((topic.name, index, offset, epoch, partition.metadata))
    out.table(("TOPIC", "PARTITION", "OFFSET", "LEADER EPOCH", "METADATA"), rows)


@connected
def commit_offsets(
    connection: Connection,
    group: GroupId,
    position: Annotated[
        list[str], typer.Argument(metavar="TOPIC:PARTITION=OFFSET...", help="The offset of each partition.")
    ],
    metadata: Annotated[str, typer.Option(metavar="TEXT", help="Free text to store with the offsets.")] = "",
) -> None:
    """Set the offsets of a group that has no members; a group that does not exist is created."""
    topics = topics_to_commit(position, metadata)
    with connection.client() as client:
        ids = cluster_topics(connection).topic_ids((topic.name for topic in topics), connection.timeout)
        named = [msgspec.structs.replace(topic, topic_id=ids.get(topic.name, "")) for topic in topics]
        committed = client.offset_commit(OffsetCommitRequest(group, named))
    if connection.as_json:
        print_json(committed)
    errors = {
        f"{topic.name}:{partition.partition_index}": partition.error_code
        for topic in committed.topics
        for partition in topic.partitions
    }
    exit_on_errors(errors)
    if not connection.as_json:
        out.line(f"{group}: committed {len(errors)} offset(s)")


def topics_to_commit(positions: Sequence[str], metadata: str) -> list[TopicToCommit]:
    """Parse ``TOPIC:PARTITION=OFFSET`` arguments into the topics of an OffsetCommit request."""
    topics: dict[str, list[PartitionToCommit]] = {}
    for position in positions:
        target, _, offset = position.rpartition("=")
        topic, _, partition = target.rpartition(":")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            fail(f"{position!r} is not TOPIC:PARTITION=OFFSET", USAGE)
        entry = PartitionToCommit(int(partition), int(offset), committed_metadata=metadata)
        topics.setdefault(topic, []).append(entry)
    return [TopicToCommit(topic, partitions) for topic, partitions in topics.items()]
