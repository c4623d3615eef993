"""Some committed offsets of a topic as a snapshot stores them: the fields of the partitions as columns.

Every batch that touches a group copies its offsets from Spark's state to Python and back, whether they change or not.
So their size matters more than the time to encode them. The partitions of a topic mostly agree in all fields but the
offset, and a column holds such a value once. Other integers are stored as distances from the least one, in as few
digits as the longest distance needs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec

from coordinator_logic.committed_offsets.offset import CommittedOffset

CHUNK = 256
"""The most partitions of a chunk. A commit decodes and encodes the chunks of its partitions: 0.2 ms for a full one."""

_BITS, _MASK = 7, 0x7F
"""A digit of a distance. Spark hands a snapshot to Python as text, in which a byte with the eighth bit costs more."""

_MOST_DIGITS = 10
"""Of a distance between two integers of 64 bits."""

_INTEGER = re.compile(rb"-?[0-9]{1,20}").fullmatch

_SINGLE_VALUES = {int, str, type(None)}
"""The types of a column that has one value for all partitions."""

_Integers = int | bytes
_IntegersOrNone = int | bytes | list[int | None] | None
_Texts = str | list[str]


class _Columns(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The fields of :class:`CommittedOffset`, each as one value for all partitions, packed integers, or a list.

    ``partitions`` is the first of ``count`` consecutive partitions, or each of them.
    """

    count: int
    partitions: _Integers
    offset: _Integers
    leader_epoch: _IntegersOrNone
    metadata: _Texts
    commit_timestamp: _Integers
    expire_timestamp: _IntegersOrNone
    sequence: _Integers
    topic_id: _Texts


class _Partitions(msgspec.Struct, array_like=True):
    """The first fields of :class:`_Columns`."""

    count: int
    partitions: _Integers


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Columns)
_partitions_decoder = msgspec.msgpack.Decoder(_Partitions)


def encode_chunk(offsets: Mapping[int, CommittedOffset]) -> bytes:
    """Encode the offsets of 1 to :data:`CHUNK` partitions, in their order."""
    partitions = list(offsets)
    count, first = len(partitions), partitions[0]
    if count == 1:
        return _encode([1, first, *msgspec.structs.astuple(offsets[first])])
    are_consecutive = partitions == list(range(first, first + count))
    fields = zip(*map(msgspec.structs.astuple, offsets.values()), strict=True)
    return _encode([count, first if are_consecutive else _packed(partitions), *map(_column, fields)])


def decode_chunk(encoded: bytes) -> dict[int, CommittedOffset]:
    """Decode what :func:`encode_chunk` returned. Raises ``msgspec.DecodeError``."""
    count, partitions, *columns = msgspec.structs.astuple(_decoder.decode(encoded))
    numbers = _numbers(count, partitions)
    if _SINGLE_VALUES.issuperset(map(type, columns)):
        return dict.fromkeys(numbers, CommittedOffset(*columns))
    offsets = map(CommittedOffset, *[_values(column, count) for column in columns])
    return dict(zip(numbers, offsets, strict=True))


def partitions_of_chunk(encoded: bytes) -> Sequence[int]:
    """The partitions of a chunk, which is not decoded otherwise. Raises ``msgspec.DecodeError``."""
    head = _partitions_decoder.decode(encoded)
    # A damaged count must not fill the memory.
    if not 0 < head.count <= CHUNK:
        raise msgspec.ValidationError(f"a chunk of {head.count} offsets")
    return _numbers(head.count, head.partitions)


def _numbers(count: int, partitions: _Integers) -> Sequence[int]:
    if isinstance(partitions, int):
        return range(partitions, partitions + count)
    return list(_values(partitions, count))


def _column(values: Sequence[Any]) -> Any:
    first = values[0]
    if values.count(first) == len(values):
        return first
    return list(values) if isinstance(first, str) or None in values else _packed(values)


def _values(column: Any, count: int) -> Iterable[Any]:
    """The values of a column. Raises ``msgspec.ValidationError`` unless there are ``count``."""
    if isinstance(column, bytes):
        return _unpacked(column, count)
    if isinstance(column, list):
        if len(column) != count:
            raise msgspec.ValidationError(f"{len(column)} values instead of {count}")
        return column
    return repeat(column, count)


def _packed(integers: Sequence[int]) -> bytes:
    """The least integer in decimal, and the distance of each from it: first the lowest digit of all, and so on."""
    least = min(integers)
    distances = [integer - least for integer in integers]
    width = -(-max(distances).bit_length() // _BITS)
    digits = [bytes([distance >> shift & _MASK for distance in distances]) for shift in range(0, width * _BITS, _BITS)]
    return b"%d:%b" % (least, b"".join(digits))


def _unpacked(packed: bytes, count: int) -> list[int]:
    least, separator, digits = packed.partition(b":")
    width, rest = divmod(len(digits), count)
    if rest or width > _MOST_DIGITS or not separator or not _INTEGER(least):
        raise msgspec.ValidationError(f"{len(digits)} digits for {count} integers from {least[:20]!r} on")
    integers = [int(least)] * count
    for place in range(width):
        of_place, shift = digits[place * count : (place + 1) * count], place * _BITS
        integers = [integer + (digit << shift) for integer, digit in zip(integers, of_place, strict=True)]
    return integers
