"""Finds topic names in a Produce request while its bytes pass in pieces."""

from collections.abc import Collection, Generator

from streaming.gateway.wire.frames import FLEXIBLE_PRODUCE_SINCE, TRANSACTIONAL_ID_SINCE, FrameRefused, RefusalReason

LENGTH_AND_HEAD = 12
"""Bytes before the client id: the frame's length, API key, version and correlation id."""

ACKS_AND_TIMEOUT = 6

SMALLEST_BATCH_BYTES = 61
"""The size of a record batch without records. A broker accepts no partition with less since version 3."""

MAX_EMPTY = 1_000
"""Partitions with less, topics without a partition, and tagged fields of one request: none of them has a purpose, but
the scan takes as long for each as for a partition with records."""

MAX_VARINT_BYTES = 5
MAX_INT16, MAX_INT32 = (1 << 15) - 1, (1 << 31) - 1

_Parser = Generator[int, bytes, None]
"""Yields a number of bytes that it wants to receive, or the negative number of bytes that it skips."""


class ProduceScan:
    """The scan of one request. It reads lengths and names, and skips records without looking at them.

    A broker must not find a name that the scan does not: what a broker would not accept is refused.

    version: the request's version, at most 12; later versions have ids instead of names.
    names: the names to find.
    """

    def __init__(self, version: int, names: Collection[str]) -> None:
        self._names = frozenset(name.encode() for name in names)
        self.found = False
        """Whether one of the names has been found; the scan ends there."""
        self.has_topic = False
        """Whether a topic's name has been read, whichever it is."""
        self.is_complete = False
        topics = _flexible_topics if version >= FLEXIBLE_PRODUCE_SINCE else _legacy_topics
        self._parser = topics(version, self)
        self._carried = b""
        self._seen = 0
        self._skipping = LENGTH_AND_HEAD
        self._wanted = 0
        self._is_started = False
        self._empty_left = MAX_EMPTY

    def feed(self, piece: bytes, begin: int) -> None:
        """Scan a piece of the frame that begins ``begin`` bytes after the frame's start; bytes seen before are ignored.

        Raises :class:`FrameRefused` for a request that no broker would accept.
        """
        size = len(piece)
        if self.found or self.is_complete:
            return
        if begin + size < self._seen + self._skipping:
            # Most bytes are records.
            if begin + size > self._seen:
                self._skipping -= begin + size - self._seen
                self._seen = begin + size
            return
        data = self._carried + piece[self._seen - begin :]
        self._seen = begin + size
        at = self._skipping
        self._carried, self._skipping = b"", 0
        while not (self.found or self.is_complete):
            if at > len(data):
                self._skipping = at - len(data)
                return
            if at + self._wanted > len(data):
                self._carried = data[at:]
                return
            taken = data[at : at + self._wanted]
            at += self._wanted
            at += self._advance(taken)

    def is_guarded(self, name: bytes) -> bool:
        """Note a topic's name; return whether it is one to find."""
        self.has_topic = True
        self.found = name in self._names
        return self.found

    def partitions(self, count: int) -> range:
        """Return a range over a topic's partitions. Raises :class:`FrameRefused`."""
        self.count_empty(_count(count) == 0)
        return range(count)

    def records(self, size: int) -> int:
        """Return a partition's records as bytes to skip. Raises :class:`FrameRefused`."""
        self.count_empty(size < SMALLEST_BATCH_BYTES)
        return -max(size, 0)

    def count_empty(self, empty: int) -> None:
        """Count what has no purpose. Raises :class:`FrameRefused` if the request has too much of it."""
        self._empty_left -= empty
        if self._empty_left < 0:
            raise FrameRefused(RefusalReason.HEADER, f"Produce with more than {MAX_EMPTY} empty partitions and fields")

    def _advance(self, taken: bytes) -> int:
        """Continue the parser with the bytes that it wanted; returns how many bytes to skip."""
        try:
            wanted = self._parser.send(taken) if self._is_started else next(self._parser)
        except StopIteration:
            self.is_complete = True
            wanted = 0
        self._is_started = True
        self._wanted = max(wanted, 0)
        return max(-wanted, 0)


def _legacy_topics(version: int, scan: ProduceScan) -> _Parser:
    yield -max(_int((yield 2)), 0)
    if version >= TRANSACTIONAL_ID_SINCE:
        yield -max(_int((yield 2)), 0)
    yield -ACKS_AND_TIMEOUT
    for _ in range(_count(_int((yield 4)))):
        name = yield _name_length(_int((yield 2)))
        if scan.is_guarded(name):
            return
        for _ in scan.partitions(_int((yield 4))):
            index_and_size = yield 8
            yield scan.records(_int(index_and_size[4:]))


def _flexible_topics(_version: int, scan: ProduceScan) -> _Parser:
    yield -max(_int((yield 2)), 0)
    yield from _tagged_fields(scan)
    yield -max((yield from _varint()) - 1, 0)
    yield -ACKS_AND_TIMEOUT
    for _ in range(_count((yield from _varint()) - 1)):
        name = yield _name_length((yield from _varint()) - 1)
        if scan.is_guarded(name):
            return
        for _ in scan.partitions((yield from _varint()) - 1):
            yield -4
            yield scan.records((yield from _varint()) - 1)
            yield from _tagged_fields(scan)
        yield from _tagged_fields(scan)


def _tagged_fields(scan: ProduceScan) -> _Parser:
    fields = yield from _varint()
    scan.count_empty(fields)
    for _ in range(fields):
        yield from _varint()
        yield -(yield from _varint())


def _varint() -> Generator[int, bytes, int]:
    """Parse an unsigned varint. Like Java's, it may have leading zeros, but not more than 32 bits."""
    value = 0
    for position in range(MAX_VARINT_BYTES):
        byte = (yield 1)[0]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    else:
        raise FrameRefused(RefusalReason.HEADER, "a varint of more than five bytes")
    if value > MAX_INT32:
        raise FrameRefused(RefusalReason.HEADER, "a length of more than 31 bits")
    return value


def _int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _name_length(value: int) -> int:
    if not 0 <= value <= MAX_INT16:
        raise FrameRefused(RefusalReason.HEADER, f"a topic name of {value} bytes")
    return value


def _count(value: int) -> int:
    """Return the length of an array, which must not be null."""
    if value < 0:
        raise FrameRefused(RefusalReason.HEADER, f"a length of {value} in Produce")
    return value
