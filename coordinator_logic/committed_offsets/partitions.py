"""The committed offsets of a topic in a snapshot, of which a chunk is decoded only when a request needs it."""

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping
from itertools import chain, islice

import msgspec

from coordinator_logic.committed_offsets.columns import CHUNK, decode_chunk, encode_chunk, partitions_of_chunk
from coordinator_logic.committed_offsets.offset import CommittedOffset
from coordinator_logic.stored_parts import UnreadablePart

_Chunk = dict[int, CommittedOffset]


class StoredPartitions(MutableMapping[int, CommittedOffset]):
    """The committed offsets of a topic by partition, in the order in which partitions were first committed.

    They are stored in chunks of :data:`CHUNK` partitions; only the last one may have fewer. So the same offsets have
    the same bytes, whatever the order in which others were changed. A chunk is decoded on first access, and encoded
    again only if it changed. Every access can raise :class:`UnreadablePart`.

    Args:
        encoded: What :func:`encode_topic` or :meth:`encoded` returned.
    """

    __slots__ = ("_before", "_decoded", "_encoded", "_has_gaps", "_places")

    def __init__(self, encoded: bytes) -> None:
        try:
            self._encoded = _chunks.decode(encoded)
            partitions = list(map(partitions_of_chunk, self._encoded))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _damaged(error) from error
        # Which chunk has a partition.
        self._places: dict[int, int] = {}
        for place, numbers in enumerate(partitions):
            self._places.update(dict.fromkeys(numbers, place))
        if len(self._places) != sum(map(len, partitions)) or any(len(each) < CHUNK for each in partitions[:-1]):
            raise _damaged(ValueError("a partition occurs twice, or a chunk has too few"))
        self._decoded: dict[int, _Chunk] = {}
        # Copies of the chunks as they were decoded.
        self._before: dict[int, _Chunk] = {}
        self._has_gaps = False

    def encoded(self) -> bytes:
        """Encode the offsets; unchanged chunks keep their bytes."""
        if self._has_gaps:
            return encode_topic(self)
        for place, chunk in self._decoded.items():
            if chunk != self._before.get(place):
                self._encoded[place] = encode_chunk(chunk)
                self._before[place] = dict(chunk)
        return _encode(self._encoded)

    def _chunk(self, place: int) -> _Chunk:
        chunk = self._decoded.get(place)
        if chunk is None:
            try:
                chunk = decode_chunk(self._encoded[place])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise _damaged(error) from error
            self._decoded[place], self._before[place] = chunk, dict(chunk)
        return chunk

    def __getitem__(self, partition: int) -> CommittedOffset:
        return self._chunk(self._places[partition])[partition]

    def __setitem__(self, partition: int, offset: CommittedOffset) -> None:
        place = self._places.get(partition)
        if place is None:
            place = len(self._places) // CHUNK
            if place == len(self._encoded):
                self._encoded.append(b"")
                self._decoded[place] = {}
            self._places[partition] = place
        self._chunk(place)[partition] = offset

    def __delitem__(self, partition: int) -> None:
        del self._chunk(self._places[partition])[partition]
        del self._places[partition]
        self._has_gaps = True

    def __contains__(self, partition: object) -> bool:
        # The one of MutableMapping would decode the chunk.
        return partition in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def items(self) -> ItemsView[int, CommittedOffset]:
        """The partitions with their offsets."""
        return _Entries(self)

    def entries(self) -> Iterator[tuple[int, CommittedOffset]]:
        """Yield each partition with its offset: chunk by chunk, which is faster than by partition."""
        if self._has_gaps:
            return ((partition, self[partition]) for partition in self._places)
        return chain.from_iterable(self._chunk(place).items() for place in range(len(self._encoded)))


class _Entries(ItemsView[int, CommittedOffset]):
    _mapping: StoredPartitions

    def __iter__(self) -> Iterator[tuple[int, CommittedOffset]]:
        return self._mapping.entries()


def encode_topic(offsets: Mapping[int, CommittedOffset]) -> bytes:
    """Encode the offsets of a topic, by partition."""
    entries, chunks = iter(offsets.items()), range(0, len(offsets), CHUNK)
    return _encode([encode_chunk(dict(islice(entries, CHUNK))) for _ in chunks])


def _damaged(error: Exception) -> UnreadablePart:
    return UnreadablePart(f"its offsets are damaged: {error}")


_chunks = msgspec.msgpack.Decoder(list[bytes])
_encode = msgspec.msgpack.Encoder().encode
