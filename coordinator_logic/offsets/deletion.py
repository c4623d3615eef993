"""The deletion of any number of offsets, in records that fit into the journal."""

from collections.abc import Iterable, Iterator

from coordinator_logic.records import OffsetsDeleted, TopicPartitions

MAX_WEIGHT = 100_000
"""The most partitions and characters of topics' names, counted together, in one record: about a megabyte of JSON.

A group can have more offsets than an entry of the journal can name. If their expiry did not fit, it would fail before
every request, and the group would answer nothing any more.
"""


def deletions(offsets: Iterable[TopicPartitions], reason: str) -> Iterator[OffsetsDeleted]:
    """The records that delete these offsets: a single one, unless they are too many for it."""
    pieces: list[TopicPartitions] = []
    weight = 0
    for entry in offsets:
        for start in range(0, len(entry.partitions), MAX_WEIGHT):
            piece = TopicPartitions(entry.topic, entry.partitions[start : start + MAX_WEIGHT], entry.topic_id)
            added = len(piece.topic) + len(piece.topic_id) + len(piece.partitions)
            if pieces and weight + added > MAX_WEIGHT:
                yield OffsetsDeleted(pieces, reason)
                pieces, weight = [], 0
            pieces.append(piece)
            weight += added
    if pieces:
        yield OffsetsDeleted(pieces, reason)
