"""What the commands about offsets read: the journal, the committed offsets, and the logs of the partitions."""

import re
import time
from collections.abc import Collection, Iterable, Sequence

from confluent_kafka.admin import AdminClient

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import GroupToFetch
from coordinator_logic.records import JournalEntry
from streaming.cli.commands.groups import exit_on_errors
from streaming.cli.connection import CLIENT_ID, Connection
from streaming.cli.console import REFUSED, USAGE, err, fail
from streaming.client import CoordinatorClient
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.librdkafka import admin_config
from streaming.explain.offsets.changes import OffsetChange, changes_of, matters_for_offsets
from streaming.explain.offsets.log_positions import logs_of
from streaming.explain.offsets.plan import Log, Position, is_of_namesake, position, positions_of
from streaming.explain.time_travel.group_history import GroupAt, group_at
from streaming.journal.folded_group import Known
from streaming.journal.group_journal import GroupJournal
from streaming.journal.reader import JournalReader

_TOPIC_PARTITIONS = re.compile(r"(?P<topic>[^:]+)(:(?P<numbers>\d+(-\d+)?(,\d+(-\d+)?)*))?")
_PAUSE_SECONDS = 0.3

Positions = dict[TopicPartition, Position]
Logs = dict[TopicPartition, Log]


def journal_of(connection: Connection, group: str) -> Iterable[JournalEntry]:
    """All entries of the journal about a group."""
    with JournalReader(connection.reader_config, connection.topics.journal, connection.timeout, CLIENT_ID) as reader:
        yield from GroupJournal(reader, group).entries()


def changes_in_journal(connection: Connection, group: str) -> list[OffsetChange]:
    """All changes of a group's offsets that the journal has."""
    return list(changes_of(filter(matters_for_offsets, journal_of(connection, group))))


def offsets_as_of(
    connection: Connection, group: str, times: Sequence[int], *, must_exist: bool = True
) -> list[tuple[Positions, bool]]:
    """A group's committed offsets at times (ms since the epoch), each with whether it had no others.

    ``must_exist``: a group that did not exist at a time ends the command.
    """
    entries = list(journal_of(connection, group))
    return [_known_offsets(connection, group, group_at(entries, time), must_exist=must_exist) for time in times]


def _known_offsets(connection: Connection, group: str, found: GroupAt, *, must_exist: bool) -> tuple[Positions, bool]:
    if found.group is None:
        if must_exist:
            fail(f"{group}: {connection.topics.journal} has no such group at that time", REFUSED)
        return {}, True
    offsets = {
        TopicPartition(topic, number): position(committed)
        for topic, number, committed in found.group.committed_offsets()
    }
    return offsets, found.known is Known.ALL


def changes_until_now(connection: Connection, client: CoordinatorClient, group: str) -> list[OffsetChange]:
    """All changes of a group's offsets, once the journal has those that the coordinator has made.

    A batch writes its answers and its journal in any order. So the journal is read again until it tells the offsets
    that the group has; that it does not within the timeout ends the command.
    """
    deadline = time.monotonic() + connection.timeout
    while True:
        now = fetched_offsets(client, group)
        changes = changes_in_journal(connection, group)
        told = {change.partition: change.after for change in changes}
        if all((None if then is None else position(then)) == now.get(each) for each, then in told.items()):
            return changes
        if time.monotonic() >= deadline:
            topic = connection.topics.journal
            fail(f"{group}: commits come faster than {topic} can be read, or it is incomplete; try again", REFUSED)
        time.sleep(_PAUSE_SECONDS)


def fetched_offsets(client: CoordinatorClient, group: str) -> Positions:
    """The offsets that a group has committed."""
    fetched = client.offset_fetch([GroupToFetch(group)]).groups[0]
    exit_on_errors({group: fetched.error_code})
    return positions_of(fetched)


def admin_of(client: CoordinatorClient) -> AdminClient:
    """An admin client of the brokers."""
    return AdminClient(admin_config(client.bootstrap_servers, client.client_id, client.config))


def logs(connection: Connection, client: CoordinatorClient, partitions: Collection[TopicPartition]) -> Logs:
    """The logs of those partitions that exist."""
    found = logs_of(admin_of(client), partitions, connection.timeout)
    ids = cluster_topics(connection).topic_ids({topic for topic, _ in found}, connection.timeout)
    return {partition: log._replace(topic_id=ids.get(partition.topic, "")) for partition, log in found.items()}


def required_logs(connection: Connection, client: CoordinatorClient, partitions: Collection[TopicPartition]) -> Logs:
    """The logs of partitions; one that does not exist ends the command."""
    known = logs(connection, client, partitions)
    if missing := sorted(set(partitions) - known.keys()):
        names = ", ".join(f"{topic}:{number}" for topic, number in missing)
        fail(f"no such partition, or its leader does not answer: {names}", REFUSED)
    return known


def of_present_topics(positions: Positions, known: Logs) -> Positions:
    """The offsets without those of deleted topics whose names other topics have now; says how many it leaves out."""
    left = {
        partition: found for partition, found in positions.items() if not is_of_namesake(found, known.get(partition))
    }
    if left_out := len(positions) - len(left):
        err.line(f"{left_out} offset(s) left out: their topic was deleted, and another one has its name now")
    return left


def selected_partitions(
    connection: Connection, topics: Sequence[str], committed: Collection[TopicPartition], *, all_topics: bool
) -> set[TopicPartition]:
    """The partitions that ``--topic`` and ``--all-topics`` select; a topic alone stands for all its partitions."""
    if all_topics == bool(topics):
        fail("give --topic or --all-topics", USAGE)
    if all_topics:
        return set(committed)
    wanted = [selected(topic, "--topic") for topic in topics]
    whole = {topic for topic, numbers in wanted if numbers is None}
    counts = _partition_counts(connection, whole)
    if missing := sorted(whole - counts.keys()):
        fail(f"no such topic: {', '.join(missing)}", REFUSED)
    return {
        TopicPartition(topic, number)
        for topic, numbers in wanted
        for number in (range(counts[topic]) if numbers is None else numbers)
    }


def selected(text: str, option: str) -> tuple[str, list[int] | None]:
    """Parse ``TOPIC[:PARTITIONS]``, such as ``orders``, ``orders:3`` or ``orders:0,2-5``; None for all partitions."""
    parsed = _TOPIC_PARTITIONS.fullmatch(text)
    if parsed is None:
        fail(f"{option} {text!r} is not TOPIC or TOPIC:PARTITIONS, such as orders:0,2-5", USAGE)
    if parsed["numbers"] is None:
        return parsed["topic"], None
    numbers: list[int] = []
    for piece in parsed["numbers"].split(","):
        first, _, last = piece.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return parsed["topic"], numbers


def _partition_counts(connection: Connection, topics: Collection[str]) -> dict[str, int]:
    described = cluster_topics(connection).describe(topics, connection.timeout, with_racks=False)
    return {topic: metadata.partitions for topic, metadata in described.items()}


def cluster_topics(connection: Connection) -> ClusterTopics:
    """Queries the brokers for topics."""
    return ClusterTopics(
        ConsumerConfig(
            bootstrap_servers=connection.bootstrap_servers,
            group_id=CLIENT_ID,
            client_id=CLIENT_ID,
            config=connection.config,
        )
    )
