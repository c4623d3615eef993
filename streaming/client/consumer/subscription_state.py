"""A consumer's subscription, its assignment and its positions. Plain data: no threads, no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.consumer.topic_pattern import Pattern
from streaming.client.consumer.types import ConsumerRecord, OffsetAndMetadata, RebalanceListener


@dataclass
class PartitionState:
    """An assigned partition. Without a position it is not fetched yet."""

    position: OffsetAndMetadata | None = None
    paused: bool = False


class SubscriptionState:
    """The subscription and the assignment of one consumer.

    ``topics`` are the subscribed topics; with a ``pattern``, the topics that it matched last.
    """

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern: Pattern | None = None
        self.listener = RebalanceListener()
        self._partitions: dict[TopicPartition, PartitionState] = {}

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription, even if none of its topics exists yet."""
        return self.pattern is not None or bool(self.topics)

    def includes(self, topic: str) -> bool:
        """Whether the subscription includes a topic; with a pattern, also one that is not in ``topics`` yet."""
        return topic in self.topics if self.pattern is None else self.pattern.matches(topic)

    def check_kind_of(self, pattern: Pattern | None) -> None:
        """Raise RuntimeError if topics would replace a pattern, or a pattern (not None) topics."""
        if self.is_subscribed and (pattern is None) != (self.pattern is None):
            raise RuntimeError("a subscription to topics and one to a pattern exclude each other: unsubscribe first")

    @property
    def assigned(self) -> list[TopicPartition]:
        """The assignment, sorted."""
        return sorted(self._partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        """The assigned partitions that are paused, sorted."""
        return sorted(partition for partition, state in self._partitions.items() if state.paused)

    @property
    def without_position(self) -> list[TopicPartition]:
        """The assigned partitions that have no position yet, sorted."""
        return sorted(partition for partition, state in self._partitions.items() if state.position is None)

    @property
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offset of the next record to return, for every assigned partition that has a position."""
        return {p: state.position for p, state in self._partitions.items() if state.position is not None}

    @property
    def is_fetching(self) -> bool:
        """Whether any assigned partition has a position and is not paused."""
        return any(state.position is not None and not state.paused for state in self._partitions.values())

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._partitions

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition. Raises ValueError for any other partition."""
        try:
            return self._partitions[partition]
        except KeyError:
            raise ValueError(f"{partition} is not assigned to this consumer") from None

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the assignment, without a position; assigned partitions keep their position."""
        for partition in partitions:
            self._partitions.setdefault(partition, PartitionState())

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions from the assignment, with their positions."""
        for partition in partitions:
            self._partitions.pop(partition, None)

    def advance(self, records: Iterable[ConsumerRecord]) -> None:
        """Move the positions past these records, which a poll returns."""
        for record in records:
            state = self._partitions[TopicPartition(record.topic, record.partition)]
            state.position = OffsetAndMetadata(record.offset + 1, leader_epoch=record.leader_epoch)
