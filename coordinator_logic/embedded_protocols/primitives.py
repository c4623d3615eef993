"""Topic partitions, the wire types of the consumer protocol, and the error for what does not fit them.

All integers are big-endian. A string is an int16 length and its UTF-8 bytes; nullable bytes are an int32 length (-1 for
null) and the bytes; an array is an int32 count and its elements. There are no compact types and no tagged fields.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A partition of a topic. Sorts by topic, then by partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def java_order(text: str) -> bytes:
    """Return a sort key for the order of Java's ``String.compareTo``: by UTF-16 code unit.

    Python compares code points, which gives another order for characters outside the basic multilingual plane. Member
    ids begin with a client id and can contain such characters; leaders in all languages must sort them alike.
    """
    return text.encode("utf-16-be", "surrogatepass")


class ConsumerProtocolError(ValueError):
    """Bytes do not follow the consumer protocol, or a value does not fit its field."""


class Reader:
    """Reads values from ``data`` in order; every method can raise :class:`ConsumerProtocolError`.

    Like Kafka's readers, it ignores bytes after the last value and decodes invalid UTF-8 with replacement characters,
    which no topic name contains.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        return int.from_bytes(self._read(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._read(4), "big", signed=True)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ConsumerProtocolError("a non-nullable string has a negative length")
        return text

    def nullable_string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._read(length).decode("utf-8", "replace")

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._read(length)

    def array(self, read_element: Callable[[], T]) -> list[T]:
        return [read_element() for _ in range(self._count())]

    def strings(self) -> list[str]:
        """Read an array of strings. A subscription may have tens of thousands, so no function runs for each."""
        count = self._count()
        data, end, texts = self._data, self._position, list[str]()
        for _ in range(count):
            start = end + 2
            length = int.from_bytes(data[end:start], "big", signed=True)
            end = start + length
            if length < 0 or end > len(data):
                break
            texts.append(data[start:end].decode("utf-8", "replace"))
            self._position = end
        # What is wrong with the others, the reader of one says.
        return texts + [self.string() for _ in range(count - len(texts))]

    def _count(self) -> int:
        count = self.int32()
        if count < 0:
            raise ConsumerProtocolError("a non-nullable array has a negative count")
        return count

    def topic_partitions(self) -> list[TopicPartition]:
        """Read an array of (topic, array of partition numbers) as a flat list."""
        by_topic = self.array(lambda: (self.string(), self.array(self.int32)))
        return [TopicPartition(topic, partition) for topic, numbers in by_topic for partition in numbers]

    def _read(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise ConsumerProtocolError(f"the data ends at byte {len(self._data)}, inside a value up to byte {end}")
        start, self._position = self._position, end
        return self._data[start:end]


def int16(value: int) -> bytes:
    return _packed(">h", value)


def int32(value: int) -> bytes:
    return _packed(">i", value)


def string(text: str) -> bytes:
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConsumerProtocolError(f"{text!r} cannot be encoded in UTF-8") from error
    return int16(len(encoded)) + encoded


def nullable_string(text: str | None) -> bytes:
    return int16(-1) if text is None else string(text)


def nullable_bytes(data: bytes | None) -> bytes:
    return int32(-1) if data is None else int32(len(data)) + data


def array(encoded_elements: Iterable[bytes]) -> bytes:
    elements = list(encoded_elements)
    return int32(len(elements)) + b"".join(elements)


def topic_partitions(by_topic: Mapping[str, Iterable[int]]) -> bytes:
    """Encode partitions for :meth:`Reader.topic_partitions`, in the given order of topics and numbers."""
    return array(string(topic) + array(map(int32, numbers)) for topic, numbers in by_topic.items())


def grouped_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Group partition numbers by topic, or by topic id, in the order in which topics and numbers appear."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def _packed(layout: str, value: int) -> bytes:
    try:
        return struct.pack(layout, value)
    except struct.error as error:
        raise ConsumerProtocolError(f"{value!r} does not fit its field: {error}") from error
