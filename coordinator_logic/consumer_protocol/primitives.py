"""The few wire types that consumers use among themselves, and the one error for bytes that do not fit them.

Everything is big-endian. A string is an int16 length and UTF-8, nullable bytes an int32 length (-1 is null)
and the bytes, an array an int32 count and its elements. Nothing here is "flexible" or tagged.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from coordinator_logic.consumer_protocol.topic_partition import TopicPartition

T = TypeVar("T")


class ConsumerProtocolError(ValueError):
    """The bytes are not what the consumer protocol says, or a value has no place in its layout."""


class Reader:
    """Reads one value after the other from ``data``; every method raises :class:`ConsumerProtocolError`.

    Like Kafka's readers it neither minds bytes after the last value nor refuses text that is not UTF-8:
    such text gets replacement characters, and no topic has that name.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ConsumerProtocolError("a string that may not be null has a negative length")
        return text

    def nullable_string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode("utf-8", "replace")

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def array(self, read_element: Callable[[], T]) -> list[T]:
        count = self.int32()
        if count < 0:
            raise ConsumerProtocolError("an array that may not be null has a negative count")
        return [read_element() for _ in range(count)]

    def topic_partitions(self) -> list[TopicPartition]:
        """An array of (topic, array of partition numbers), flattened."""
        by_topic = self.array(lambda: (self.string(), self.array(self.int32)))
        return [TopicPartition(topic, partition) for topic, numbers in by_topic for partition in numbers]

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise ConsumerProtocolError(f"the data ends at byte {len(self._data)}, inside a value up to byte {end}")
        taken = self._data[self._position : end]
        self._position = end
        return taken


def int16(value: int) -> bytes:
    return _packed(">h", value)


def int32(value: int) -> bytes:
    return _packed(">i", value)


def string(text: str) -> bytes:
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConsumerProtocolError(f"{text!r} has no UTF-8 form") from error
    return int16(len(encoded)) + encoded


def nullable_string(text: str | None) -> bytes:
    return int16(-1) if text is None else string(text)


def nullable_bytes(data: bytes | None) -> bytes:
    return int32(-1) if data is None else int32(len(data)) + data


def array(encoded_elements: Iterable[bytes]) -> bytes:
    elements = list(encoded_elements)
    return int32(len(elements)) + b"".join(elements)


def topic_partitions(by_topic: Mapping[str, Iterable[int]]) -> bytes:
    """The inverse of :meth:`Reader.topic_partitions`; topics and numbers stay in the order they come in."""
    return array(string(topic) + array(map(int32, numbers)) for topic, numbers in by_topic.items())


def grouped_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers per topic, in the order in which topics and numbers first appear."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def _packed(layout: str, value: int) -> bytes:
    try:
        return struct.pack(layout, value)
    except struct.error as error:
        raise ConsumerProtocolError(f"{value!r} does not fit its field: {error}") from error
