"""Finds the topic ids in a Fetch request without decoding its partitions."""

from streaming.gateway.wire.frames import LENGTH_SIZE, FrameRefused, RefusalReason
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps

IDS_SINCE = 13
"""The first version of Fetch with topic ids in place of names (KIP-516)."""

TAGGED_REPLICA_SINCE = 15
"""The first version without the replica's id at the beginning (KIP-903)."""

BEFORE_CLIENT_ID = LENGTH_SIZE + 8
FIXED_BYTES = 21
"""From the longest wait to the session's epoch."""

ID_BYTES = 16
PARTITION_BYTES = 33
"""A partition without tagged fields; its last byte is their number."""

MAX_VARINT_BYTES = 5


def fetched_topic_ids(frame: bytes, version: int, max_entries: int) -> Steps[set[bytes]]:
    """Return the ids of the topics to fetch, from a whole request frame of version 13 or later.

    Raises :class:`FrameRefused` for a request that ends too early, and for one that has more than ``max_entries``
    topics and tagged fields together. Partitions without tagged fields cost nothing.
    """
    scan = _FetchScan(frame, max_entries)
    try:
        return (yield from scan.topic_ids(version))
    except IndexError as failure:
        raise FrameRefused(RefusalReason.UNDECODABLE, f"Fetch v{version} ends in its topics") from failure


class _FetchScan:
    """The scan of one request. Its methods raise ``IndexError`` at the frame's end."""

    def __init__(self, frame: bytes, max_entries: int) -> None:
        self._frame = frame
        self._at = BEFORE_CLIENT_ID
        self._entries_left = max_entries
        self._seen_in_step = 0

    def topic_ids(self, version: int) -> Steps[set[bytes]]:
        frame = self._frame
        client_id_length = int.from_bytes(frame[self._at : self._at + 2], "big", signed=True)
        self._at += 2 + max(client_id_length, 0)
        yield from self._skip_tagged_fields(self._varint())
        self._at += FIXED_BYTES if version >= TAGGED_REPLICA_SINCE else FIXED_BYTES + 4
        topics = self._varint() - 1
        self._announce(topics)
        ids: set[bytes] = set()
        for _ in range(topics):
            ids.add(frame[self._at : self._at + ID_BYTES])
            self._at += ID_BYTES
            partitions = self._varint() - 1
            if not self._skip_plain_partitions(partitions):
                yield from self._skip_partitions(partitions)
            if fields := self._varint():
                yield from self._skip_tagged_fields(fields)
            if self._is_end_of_step():
                yield
        return ids

    def _skip_plain_partitions(self, count: int) -> bool:
        """Skip the partitions if none of them has tagged fields."""
        end = self._at + PARTITION_BYTES * max(count, 0)
        if end > len(self._frame):
            raise IndexError
        if any(self._frame[self._at + PARTITION_BYTES - 1 : end : PARTITION_BYTES]):
            return False
        self._at = end
        return True

    def _skip_partitions(self, count: int) -> Steps[None]:
        for _ in range(count):
            self._at += PARTITION_BYTES - 1
            if fields := self._varint():
                yield from self._skip_tagged_fields(fields)
            if self._is_end_of_step():
                yield

    def _skip_tagged_fields(self, fields: int) -> Steps[None]:
        self._announce(fields)
        for _ in range(fields):
            self._varint()
            size = self._varint()
            self._at += size
            if self._is_end_of_step():
                yield

    def _announce(self, count: int) -> None:
        self._entries_left -= max(count, 0)
        if self._entries_left < 0:
            raise FrameRefused(RefusalReason.TOO_MANY_ENTRIES, "Fetch has too many topics or tagged fields")

    def _is_end_of_step(self) -> bool:
        self._seen_in_step = (self._seen_in_step + 1) % ENTRIES_PER_STEP
        return self._seen_in_step == 0

    def _varint(self) -> int:
        """Read an unsigned varint."""
        first = self._frame[self._at]
        if first < 0x80:
            self._at += 1
            return first
        value = 0
        for position in range(MAX_VARINT_BYTES):
            byte = self._frame[self._at + position]
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                self._at += position + 1
                return value
        raise FrameRefused(RefusalReason.UNDECODABLE, "a varint of more than five bytes")
