"""What a consumer wants, what it has been given, and how far it is. Data: no threads, no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator_logic.consumer_protocol import TopicPartition
from streaming.client.consumer_types import ConsumerRecord, OffsetAndMetadata, RebalanceListener
from streaming.client.topic_pattern import TopicPattern


@dataclass
class PartitionState:
    """One partition of the assignment. Without a position it is not fetched from yet."""

    position: OffsetAndMetadata | None = None
    paused: bool = False


class SubscriptionState:
    """The subscription and the assignment of one consumer.

    ``topics`` are those that are wanted; with a ``pattern`` they are those that matched it last.
    """

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern: TopicPattern | None = None
        self.listener = RebalanceListener()
        self._partitions: dict[TopicPartition, PartitionState] = {}

    @property
    def is_subscribed(self) -> bool:
        """Whether anything is wanted, be it topics that do not exist yet."""
        return self.pattern is not None or bool(self.topics)

    def wants(self, topic: str) -> bool:
        """Whether a topic is wanted, also one that matches the pattern and has not been seen yet."""
        return topic in self.topics if self.pattern is None else self.pattern.matches(topic)

    @property
    def assigned(self) -> list[TopicPartition]:
        """The assignment, sorted."""
        return sorted(self._partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        """What is assigned and paused, sorted."""
        return sorted(partition for partition, state in self._partitions.items() if state.paused)

    @property
    def without_position(self) -> list[TopicPartition]:
        """What is assigned and has no position yet, sorted."""
        return sorted(partition for partition, state in self._partitions.items() if state.position is None)

    @property
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the next records come from, for every partition of which that is known."""
        return {p: state.position for p, state in self._partitions.items() if state.position is not None}

    @property
    def is_fetching(self) -> bool:
        """Whether a record may come from anywhere."""
        return any(state.position is not None and not state.paused for state in self._partitions.values())

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._partitions

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition; ValueError for another."""
        try:
            return self._partitions[partition]
        except KeyError:
            raise ValueError(f"{partition} is not assigned to this consumer") from None

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions into the assignment, without a position."""
        for partition in partitions:
            self._partitions.setdefault(partition, PartitionState())

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions from the assignment, with all that is known of them."""
        for partition in partitions:
            self._partitions.pop(partition, None)

    def consumed(self, records: Iterable[ConsumerRecord]) -> None:
        """These records are being handed out: the positions are behind them now."""
        for record in records:
            state = self._partitions[TopicPartition(record.topic, record.partition)]
            state.position = OffsetAndMetadata(record.offset + 1, leader_epoch=record.leader_epoch)
