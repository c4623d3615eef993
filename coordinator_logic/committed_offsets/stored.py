"""The committed offsets of a snapshot, of which a topic is decoded only when a request needs it."""

from collections.abc import Iterator, MutableMapping
from typing import Self

from coordinator_logic.committed_offsets.offset import CommittedOffset, Offsets
from coordinator_logic.committed_offsets.partitions import StoredPartitions, encode_topic

_Partitions = MutableMapping[int, CommittedOffset]


class StoredOffsets(Offsets):
    """The committed offsets of a snapshot by topic.

    Most requests to a group are heartbeats, which read no offset, and a commit concerns few topics. Every access to a
    topic can raise :class:`~coordinator_logic.stored_parts.UnreadablePart`.

    Args:
        encoded: The offsets of each topic as :func:`encode_topic` returned them; the mapping becomes their owner.
        count: The number of offsets in ``encoded``.
    """

    __slots__ = ("_encoded", "_unread_count", "_used")

    def __init__(self, encoded: dict[str, bytes], count: int) -> None:
        # All topics in their order; the bytes of a topic that has changed are outdated.
        self._encoded = encoded
        self._unread_count = count
        self._used: dict[str, _Partitions] = {}

    @classmethod
    def of(cls, offsets: Offsets) -> Self:
        """Offsets that are not encoded yet."""
        stored = cls(dict.fromkeys(offsets, b""), 0)
        stored._used = dict(offsets)
        return stored

    def for_snapshot(self) -> dict[str, bytes]:
        """The encoded topics: the original bytes of those that have not changed."""
        for topic, partitions in self._used.items():
            if type(partitions) is StoredPartitions:
                self._encoded[topic] = partitions.encoded()
            else:
                self._encoded[topic] = encode_topic(partitions)
        return self._encoded

    @property
    def count(self) -> int:
        """The number of committed offsets."""
        return self._unread_count + sum(map(len, self._used.values()))

    def __getitem__(self, topic: str) -> _Partitions:
        partitions = self._used.get(topic)
        if partitions is None:
            partitions = self._used[topic] = StoredPartitions(self._encoded[topic])
            self._unread_count -= len(partitions)
        return partitions

    def __setitem__(self, topic: str, partitions: _Partitions) -> None:
        self._stop_counting(topic)
        self._encoded.setdefault(topic, b"")
        self._used[topic] = partitions

    def __delitem__(self, topic: str) -> None:
        self._stop_counting(topic)
        del self._encoded[topic]
        self._used.pop(topic, None)

    def _stop_counting(self, topic: str) -> None:
        """Take the offsets of a topic for used, so that ``count`` follows what becomes of them."""
        if topic in self._encoded:
            self[topic]

    def clear(self) -> None:
        """Remove all offsets, without decoding them."""
        self._unread_count = 0
        self._encoded.clear()
        self._used.clear()

    def __contains__(self, topic: object) -> bool:
        # The one of MutableMapping would decode the topic.
        return topic in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


def offset_count(offsets: Offsets) -> int:
    """The number of committed offsets, without decoding them."""
    # The check of an abstract class is a call of a Python function; this runs for every group of every batch.
    return offsets.count if type(offsets) is StoredOffsets else sum(map(len, offsets.values()))
