"""Files of offsets: CSV, JSON and Parquet, with the columns of :data:`COLUMNS`.

A CSV file may lack the first line and the last three columns, as those of Kafka's ``--export`` do.
"""

import csv
import io
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import NO_LEADER_EPOCH, Int32, Int64
from coordinator_logic.messages.base import OptionalTopicId
from streaming.contract.output.csv_cells import csv_line, original
from streaming.contract.output.text import json_text
from streaming.explain.offsets.plan import Position

COLUMNS = ("topic", "partition", "offset", "leaderEpoch", "metadata", "topicId")
NEEDED_COLUMNS = 3


class FileFormat(StrEnum):
    """The formats; a file's name ends in the format's."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class StoredOffset(msgspec.Struct, frozen=True, rename="camel"):
    """The offset of a partition in a file."""

    topic: str
    partition: Int32
    offset: Int64
    leader_epoch: Int32 = NO_LEADER_EPOCH
    metadata: str = ""
    topic_id: OptionalTopicId = ""


class UnreadableOffsetsFile(ValueError):
    """A file that has no offsets, with the reason."""


def format_of(file: Path) -> FileFormat:
    """The format by the end of the file's name. Raises ValueError, which lists the formats."""
    try:
        return FileFormat(file.suffix.removeprefix(".").lower())
    except ValueError:
        raise ValueError(f"{file}: its name ends in none of .{', .'.join(FileFormat)}") from None


def encoded(positions: Mapping[TopicPartition, Position], file_format: FileFormat) -> bytes:
    """The offsets in a format, in the order of their partitions."""
    rows = [
        StoredOffset(*partition, found.offset, found.leader_epoch, found.metadata, found.topic_id)
        for partition, found in sorted(positions.items())
    ]
    match file_format:
        case FileFormat.CSV:
            return "".join(csv_line(line) for line in (COLUMNS, *map(msgspec.structs.astuple, rows))).encode()
        case FileFormat.JSON:
            return json_text(rows, indent=2).encode() + b"\n"
        case FileFormat.PARQUET:
            return _encoded_parquet(rows)


def decoded(content: bytes, file_format: FileFormat) -> dict[TopicPartition, Position]:
    """The offsets in the bytes of a file.

    Raises UnreadableOffsetsFile: it cannot be read, has no offsets, a negative one, or two of one partition.
    """
    try:
        match file_format:
            case FileFormat.CSV:
                rows = _decoded_csv(content)
            case FileFormat.JSON:
                rows = msgspec.json.decode(content, type=list[StoredOffset])
            case FileFormat.PARQUET:
                rows = _decoded_parquet(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, csv.Error) as error:
        raise UnreadableOffsetsFile(str(error)) from error
    positions: dict[TopicPartition, Position] = {}
    for row in rows:
        partition = TopicPartition(row.topic, row.partition)
        if partition in positions:
            raise UnreadableOffsetsFile(f"{row.topic}:{row.partition} has two offsets")
        if row.offset < 0 or row.partition < 0:
            raise UnreadableOffsetsFile(f"{row.topic}:{row.partition}={row.offset} is negative")
        positions[partition] = Position(row.offset, row.leader_epoch, row.metadata, row.topic_id)
    if not positions:
        raise UnreadableOffsetsFile("it has no offsets")
    return positions


def _decoded_csv(content: bytes) -> list[StoredOffset]:
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    lines = [list(map(original, line)) for line in csv.reader(text) if line]
    columns: tuple[str, ...] = COLUMNS
    if lines and lines[0][1:2] == ["partition"]:
        columns = tuple(lines.pop(0))
    if any(not NEEDED_COLUMNS <= len(line) <= len(columns) for line in lines):
        raise UnreadableOffsetsFile(f"a line does not have the columns {', '.join(columns)}")
    named = [dict(zip(columns, line, strict=False)) for line in lines]
    return msgspec.convert(named, list[StoredOffset], strict=False)


def _encoded_parquet(rows: list[StoredOffset]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    text = pyarrow.string()
    types = (text, pyarrow.int32(), pyarrow.int64(), pyarrow.int32(), text, text)
    schema = pyarrow.schema(list(zip(COLUMNS, types, strict=True)))
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(msgspec.to_builtins(rows), schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _decoded_parquet(content: bytes) -> list[StoredOffset]:
    import pyarrow
    from pyarrow import parquet

    try:
        rows = parquet.read_table(pyarrow.BufferReader(content)).to_pylist()
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UnreadableOffsetsFile(str(error)) from error
    return msgspec.convert(rows, list[StoredOffset])
