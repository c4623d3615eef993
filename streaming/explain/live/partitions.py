"""The partitions of groups as of now: what is committed, where the logs end, and which member has each of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import FetchedGroup, GroupToFetch
from streaming.client import CoordinatorClient
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.group_types import AnyDescribedGroup, type_of
from streaming.client.librdkafka import admin_config
from streaming.contract.output.columns import Column
from streaming.explain.live.group_types import Holder, description_of
from streaming.explain.offsets.log_positions import logs_of
from streaming.explain.offsets.plan import Log, Position, is_of_namesake, positions_of

BEYOND_THE_END = "beyond the end"
NO_END = "the end cannot be read"
NO_PARTITION = "no such partition"
NO_TOPIC = "no such topic, or it is hidden"
OF_DELETED_TOPIC = "of a deleted topic of this name"


class Logs(NamedTuple):
    """The logs of those partitions that can be read, and how many partitions each topic has that exists."""

    logs: Mapping[TopicPartition, Log]
    counts: Mapping[str, int]


class PartitionNow(NamedTuple):
    """A partition of a group. ``end`` is the log end offset; None if it is not known, of which ``note`` has the reason.

    ``committed`` is None without a committed offset, and ``holder`` without a member that has the partition.
    """

    partition: TopicPartition
    committed: Position | None
    end: int | None
    holder: Holder | None
    note: str = ""

    @property
    def lag(self) -> int | None:
        """How many records are after the committed offset; None if it is not known, or the offset is beyond the end."""
        if self.committed is None or self.end is None or self.committed.offset > self.end:
            return None
        return self.end - self.committed.offset

    @property
    def owner(self) -> str | None:
        """The member that has it, with its host."""
        return None if self.holder is None else f"{self.holder.member_id} at {self.holder.client_host}"

    def cells(self) -> tuple[str, ...]:
        """Its texts in :data:`PARTITION_COLUMNS`."""
        committed = None if self.committed is None else self.committed.offset
        figures = ("-" if each is None else str(each) for each in (committed, self.end, self.lag))
        return self.partition.topic, str(self.partition.partition), *figures, self.owner or "-"

    def figures(self) -> dict[str, Any]:
        """What JSON has of it besides its place and its committed offset."""
        holder = self.holder
        owner = None if holder is None else dict(zip(OWNER_FIELDS, holder[1:], strict=True))
        return {"logEndOffset": self.end, "lag": self.lag, "owner": owner, "note": self.note}


PARTITION_TABLE = (
    *map(Column, ("TOPIC", "PARTITION", "OFFSET")),
    Column("END", rank=3),
    Column("LAG"),
    Column("OWNER", rank=2, least=20),
)
NOTE = Column("NOTE", rank=1, least=10)

PARTITION_COLUMNS = tuple(column.title for column in PARTITION_TABLE)

OWNER_FIELDS = ("memberId", "clientId", "clientHost")


def partitions_now(
    client: CoordinatorClient, groups: Sequence[AnyDescribedGroup], timeout: float
) -> dict[str, list[PartitionNow]]:
    """The partitions that described groups have committed or whose members have them, by group id.

    timeout: how long to wait for each answer of the brokers, in seconds. Raises CoordinatorError without an answer.
    """
    existing = {group.group_id: group for group in groups if not group.error_code}
    fetched = client.offset_fetch([GroupToFetch(group_id) for group_id in existing]).groups
    held = {group_id: holders_of(group) for group_id, group in existing.items()}
    committed = {each.group_id: _offsets_of(each) for each in fetched}
    wanted = {partition for group_id in existing for partition in (*held[group_id], *committed.get(group_id, ()))}
    logs = read_logs(client, wanted, timeout)
    return {group_id: list(rows_of(committed.get(group_id, {}), held[group_id], logs)) for group_id in existing}


def holders_of(group: AnyDescribedGroup) -> dict[TopicPartition, Holder]:
    """Which member has which partition."""
    return {holder.partition: holder for holder in description_of(type_of(group)).holders(group)}


def rows_of(
    committed: Mapping[TopicPartition, Position], held: Mapping[TopicPartition, Holder], logs: Logs
) -> Iterable[PartitionNow]:
    """A row for each partition that is committed or held, sorted."""
    for partition in sorted({*committed, *held}):
        yield row_of(partition, committed.get(partition), held.get(partition), logs)


def row_of(partition: TopicPartition, position: Position | None, holder: Holder | None, logs: Logs) -> PartitionNow:
    """The row of a partition, with the reason why its end is not known or its offset is beyond it."""
    log = logs.logs.get(partition)
    if log is None:
        return PartitionNow(partition, position, None, holder, _why_no_end(partition, logs.counts))
    if position is not None and is_of_namesake(position, log):
        return PartitionNow(partition, position, None, holder, OF_DELETED_TOPIC)
    note = BEYOND_THE_END if position is not None and position.offset > log.end else ""
    return PartitionNow(partition, position, log.end, holder, note)


def _why_no_end(partition: TopicPartition, counts: Mapping[str, int]) -> str:
    if partition.topic not in counts:
        return NO_TOPIC
    return NO_END if partition.partition < counts[partition.topic] else NO_PARTITION


def read_logs(client: CoordinatorClient, partitions: Collection[TopicPartition], timeout: float) -> Logs:
    """Ask the brokers for the logs of partitions, with their topics' ids, and for the topics' sizes.

    timeout: how long to wait for each answer, in seconds. Raises CoordinatorError if no broker answers.
    """
    if not partitions:
        return Logs({}, {})
    topics = cluster_topics(client)
    described = topics.describe({topic for topic, _ in partitions}, timeout, with_racks=False)
    counts = {topic: metadata.partitions for topic, metadata in described.items()}
    existing = [each for each in partitions if each.partition < counts.get(each.topic, 0)]
    found = logs_of(admin_of(client), existing, timeout)
    ids = topics.topic_ids({topic for topic, _ in found}, timeout)
    return Logs({each: log._replace(topic_id=ids.get(each.topic, "")) for each, log in found.items()}, counts)


def cluster_topics(client: CoordinatorClient) -> ClusterTopics:
    """Queries the brokers of a client for topics."""
    return ClusterTopics(
        ConsumerConfig(
            bootstrap_servers=client.bootstrap_servers,
            group_id=client.client_id,
            client_id=client.client_id,
            config=client.config,
        )
    )


def admin_of(client: CoordinatorClient) -> AdminClient:
    """An admin client of the brokers of a client."""
    return AdminClient(admin_config(client.bootstrap_servers, client.client_id, client.config))


def _offsets_of(fetched: FetchedGroup) -> dict[TopicPartition, Position]:
    return {} if fetched.error_code else positions_of(fetched)
