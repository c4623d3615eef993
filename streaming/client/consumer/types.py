"""The consumer's public types: configuration, records, offsets and callbacks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from coordinator_logic.assignors import Assignor, assignor_by_name
from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.consumer.topic_pattern import CoordinatorPattern, Pattern, TopicPattern, internal_topics
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.membership.types import GroupProtocol, MemberConfig, Observer
from streaming.contract.identity import PrincipalKey
from streaming.contract.topics import TopicNames


class ConsumerRecord(NamedTuple):
    """A record of a topic. ``timestamp`` is in Unix milliseconds; it and ``leader_epoch`` are -1 if there is none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int = -1


class OffsetAndMetadata(NamedTuple):
    """A position to commit, or a committed one. ``offset`` is that of the next record to consume."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


_SETTINGS_OF_OTHERS: Mapping[GroupProtocol, tuple[str, ...]] = {
    "classic": ("group_remote_assignor",),
    # The coordinator decides these; Kafka's client refuses them, too.
    "consumer": ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"),
}
"""The settings that a consumer with this protocol cannot have."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, CoordinatorError | None], None]
"""Called with the offsets of an asynchronous commit, and with its error or None."""


class RebalanceListener:
    """Callbacks for changes of the assignment, called from ``poll``, ``unsubscribe`` or ``close``.

    The methods may call the consumer (``commit``, ``seek``, ...). Their exceptions propagate to the caller of ``poll``,
    ``unsubscribe`` or ``close``. The default methods do nothing.
    """

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Called before partitions are given up. The consumer still owns them: the last chance to commit."""

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Called at the end of every rebalance with the added partitions, which may be none."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when the consumer was removed from the group: other members may own the partitions already.

        Commits fail. By default calls :meth:`on_partitions_revoked`.
        """
        self.on_partitions_revoked(partitions)


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig:
    """The settings of a consumer: Kafka's names and defaults, times in milliseconds. Raises ValueError.

    topic_prefix: the prefix of the coordinator's topics.
    group_protocol: ``classic``, in which a leader assigns, or ``consumer``, in which the coordinator assigns (KIP-848).
        With ``consumer``, the coordinator also decides on session timeout and heartbeat interval.
    group_remote_assignor: the coordinator's assignor that this consumer asks for; with ``consumer`` only.
    partition_assignment_strategy: assignors or their names, the preferred one first; the group uses one that all
        members list.
    metadata_max_age_ms: the interval at which the group's leader checks the topics of all members for new partitions,
        and at which every member with a pattern checks for new topics. With ``consumer``, every member checks its own.
    retry_backoff_max_ms: also the shortest time between two metadata queries.
    exclude_internal_topics: whether a pattern ignores Kafka's internal topics and the coordinator's own.
    pattern_refresh_timeout_ms: how long a rejoin waits for the topics that match the pattern now. Members notice a new
        topic at different times; without the wait, each of them would cause a rebalance.
    client_rack: the rack of this consumer, as in the brokers' ``broker.rack``. The leader prefers to assign it
        partitions with a replica in this rack (KIP-881); it fetches from that replica if brokers allow it (KIP-392).
    principal_key: that of :class:`~streaming.client.CoordinatorClient`.
    config: librdkafka settings for every Kafka client of the consumer (security, fetch sizes etc.).
    observer: called with every :class:`~streaming.client.MemberEvent`, from several threads.
    """

    bootstrap_servers: str
    group_id: str
    topic_prefix: str = ""
    client_id: str = "group-consumer"
    group_protocol: GroupProtocol = "classic"
    group_remote_assignor: str | None = None
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
    pattern_refresh_timeout_ms: int = 500
    client_rack: str | None = None
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    principal_key: PrincipalKey | None = None
    config: LibrdkafkaConfig = field(default_factory=dict)
    observer: Observer | None = None

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("group_id must not be empty")
        if self.auto_offset_reset not in ("latest", "earliest", "none"):
            raise ValueError(f"auto_offset_reset is {self.auto_offset_reset!r}, not latest, earliest or none")
        for name in (
            "max_poll_records",
            "max_poll_interval_ms",
            "auto_commit_interval_ms",
            "metadata_max_age_ms",
            "pattern_refresh_timeout_ms",
            "retry_backoff_ms",
            "retry_backoff_max_ms",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be positive")

        self._check_protocol()

    def _check_protocol(self) -> None:
        if self.group_protocol not in get_args(GroupProtocol):
            raise ValueError(f"group_protocol is {self.group_protocol!r}, not classic or consumer")
        for name in _SETTINGS_OF_OTHERS[self.group_protocol]:
            if getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name} cannot be set with group_protocol={self.group_protocol!r}")

    def member_config(self) -> MemberConfig:
        """The settings of the consumer's membership."""
        return MemberConfig(
            group_id=self.group_id,
            group_instance_id=self.group_instance_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.max_poll_interval_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            group_protocol=self.group_protocol,
            group_remote_assignor=self.group_remote_assignor,
            rack_id=self.client_rack or None,
        )

    def topic_pattern(self, expression: str | re.Pattern[str]) -> Pattern:
        """The subscription to a regular expression under these settings.

        With ``group_protocol="consumer"``, the coordinator evaluates a string, as Kafka's SubscriptionPattern.

        Raises:
            re.error: the expression is not a regular expression of Python, or of RE2 if the coordinator evaluates it.
        """
        excluded = internal_topics(TopicNames(self.topic_prefix)) if self.exclude_internal_topics else frozenset[str]()
        if self.group_protocol == "consumer" and isinstance(expression, str):
            return CoordinatorPattern(expression, excluded)
        return TopicPattern(re.compile(expression), excluded)

    def assignors(self) -> list[Assignor]:
        """The assignors of the strategy, in order. Raises ValueError for a name that no assignor has."""
        if not self.partition_assignment_strategy:
            raise ValueError("partition_assignment_strategy must name an assignor")
        return [
            assignor_by_name(strategy) if isinstance(strategy, str) else strategy
            for strategy in self.partition_assignment_strategy
        ]


def offsets_of(offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Normalize a user's offsets: bare numbers get empty metadata, plain pairs become partitions."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }


def partitions_of(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Normalize a user's partitions, which may be plain pairs of topic and number."""
    return [TopicPartition(*partition) for partition in partitions]
