"""The open transactions of a group, and which of them have a pending offset of a partition."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from coordinator_logic.committed_offsets import Offsets


class OpenTransaction(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The pending offsets of a producer's open transaction; none are left if their topics were deleted."""

    producer_epoch: int
    offsets: Offsets = {}


@dataclass(slots=True, init=False)
class PendingOffsets:
    """The producers with a pending offset, by topic and partition.

    Args:
        transactions: The group's open transactions, by producer id.
    """

    _producers: dict[str, dict[int, dict[int, None]]]

    def __init__(self, transactions: Mapping[int, OpenTransaction]) -> None:
        self._producers = {}
        for producer_id, transaction in transactions.items():
            for topic, partitions in transaction.offsets.items():
                for partition in partitions:
                    self.add(producer_id, topic, partition)

    def add(self, producer_id: int, topic: str, partition: int) -> None:
        """Note an offset that a producer has added to its transaction, perhaps again."""
        self._producers.setdefault(topic, {}).setdefault(partition, {})[producer_id] = None

    def remove(self, producer_id: int, topic: str, partitions: Iterable[int]) -> None:
        """Forget the offsets of a transaction that has ended, or whose offsets were deleted."""
        pending = self._producers[topic]
        for partition in partitions:
            producers = pending[partition]
            del producers[producer_id]
            if not producers:
                del pending[partition]
        if not pending:
            del self._producers[topic]

    def producers(self, topic: str, partition: int) -> Collection[int]:
        """The producers with a pending offset of a partition."""
        return self._producers.get(topic, {}).get(partition, ())

    def partitions(self, topic: str) -> Collection[int]:
        """The partitions of a topic with a pending offset."""
        return self._producers.get(topic, ())

    def __contains__(self, topic_partition: tuple[str, int]) -> bool:
        topic, partition = topic_partition
        return partition in self._producers.get(topic, ())
