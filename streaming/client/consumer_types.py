"""What a consumer is configured with, hands out and calls back."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.consumer_protocol.assignors import Assignor, assignor_by_name
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.member_types import Observer
from streaming.client.topic_pattern import TopicPattern, internal_topics
from streaming.topics import TopicNames


class ConsumerRecord(NamedTuple):
    """A record as it stands in the log. ``timestamp`` is ms since the epoch, -1 when there is none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int = -1


class OffsetAndMetadata(NamedTuple):
    """A position to commit, or one that was: ``offset`` is that of the next record to consume."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, CoordinatorError | None], None]
"""Told what was to be committed, and why it was not if it was not."""


class RebalanceListener:
    """Told of every change of the assignment, from inside ``poll``, ``unsubscribe`` or ``close``.

    The methods may call the consumer (``commit``, ``seek``, ...). What they raise comes out of that call.
    """

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These are about to be given up; they still belong to this consumer, so commit now."""

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These have been added, perhaps none. A rebalance ends with this call."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """These belong to somebody else already: nothing can be committed. By default the same as revoked."""
        self.on_partitions_revoked(partitions)


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig:
    """Kafka's settings under Kafka's names, with Kafka's defaults; times in milliseconds.

    topic_prefix: the prefix of the coordinator's topics.
    partition_assignment_strategy: names of assignors, or assignors; the one that all members list is used.
    metadata_max_age_ms: how often the brokers are asked for new topics and partitions: by the leader of the group
        for the topics of all members, and by every member that subscribes to a pattern.
    exclude_internal_topics: a pattern matches neither Kafka's internal topics nor the coordinator's.
    client_rack: where this consumer runs, as in the brokers' ``broker.rack``. The leader prefers to give it partitions
        with a replica there (KIP-881), and it fetches from that replica if the brokers let it (KIP-392).
    config: added to every librdkafka client (security, fetch sizes etc.).
    observer: told of what the membership goes through (see MemberEvent), from several threads.
    """

    bootstrap_servers: str
    group_id: str
    topic_prefix: str = ""
    client_id: str = "group-consumer"
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    auto_offset_reset: Literal["latest", "earliest", "none"] = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    partition_assignment_strategy: Sequence[str | Assignor] = ("range", "cooperative-sticky")
    metadata_max_age_ms: int = 300_000
    exclude_internal_topics: bool = True
    client_rack: str | None = None
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    config: LibrdkafkaConfig = field(default_factory=dict)
    observer: Observer | None = None

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("group_id must not be empty")
        if self.auto_offset_reset not in ("latest", "earliest", "none"):
            raise ValueError(f"auto_offset_reset is {self.auto_offset_reset!r}, not latest, earliest or none")
        for name in ("max_poll_records", "max_poll_interval_ms", "auto_commit_interval_ms", "metadata_max_age_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be positive")

    def topic_pattern(self, expression: str | re.Pattern[str]) -> TopicPattern:
        """What a subscription to a regular expression means."""
        excluded = internal_topics(TopicNames(self.topic_prefix)) if self.exclude_internal_topics else frozenset[str]()
        return TopicPattern(re.compile(expression), excluded)

    def assignors(self) -> list[Assignor]:
        """The assignors of the strategy, in order; ValueError names one that does not exist."""
        if not self.partition_assignment_strategy:
            raise ValueError("partition_assignment_strategy must name an assignor")
        return [
            assignor_by_name(strategy) if isinstance(strategy, str) else strategy
            for strategy in self.partition_assignment_strategy
        ]


def offsets_of(given: Mapping[TopicPartition, int | OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as a user may give them: bare, or with metadata; partitions may be plain pairs."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in given.items()
    }


def partitions_of(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions as a user may give them: plain pairs will do."""
    return [TopicPartition(*partition) for partition in given]
