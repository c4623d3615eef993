"""The columns of a row type, for Spark and for Arrow, and rows as Arrow's record batches."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import inspect

from streaming.explain.time_travel.row_types import TableRow

ROWS_TOGETHER = 10_000


class ColumnType(NamedTuple):
    """A type's name in Spark's DDL, and its type in Arrow as Spark expects it."""

    ddl: str
    arrow: Any


_STRING = ColumnType("string", pa.string())
_TYPES = {
    inspect.StrType: _STRING,
    inspect.IntType: ColumnType("bigint", pa.int64()),
    inspect.BoolType: ColumnType("boolean", pa.bool_()),
    inspect.DateTimeType: ColumnType("timestamp", pa.timestamp("us", tz="UTC")),
    inspect.BytesType: ColumnType("binary", pa.binary()),
    # Spark calls the elements so.
    inspect.ListType: ColumnType("array<string>", pa.list_(pa.field("element", pa.string()))),
}


def columns_of(row_type: type[TableRow]) -> dict[str, ColumnType]:
    """The columns of a row type, in order."""
    info = inspect.type_info(row_type)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _column_type(field.type) for field in info.fields}


def spark_schema(row_type: type[TableRow]) -> str:
    """The schema in Spark's DDL."""
    return ", ".join(f"`{name}` {column.ddl}" for name, column in columns_of(row_type).items())


def arrow_schema(row_type: type[TableRow]) -> Any:
    """The schema in Arrow."""
    return pa.schema([(name, column.arrow) for name, column in columns_of(row_type).items()])


def record_batches(row_type: type[TableRow], rows: Iterable[TableRow]) -> Iterator[Any]:
    """The rows as record batches of at most :data:`ROWS_TOGETHER` rows."""
    schema, remaining = arrow_schema(row_type), iter(rows)
    while part := list(islice(remaining, ROWS_TOGETHER)):
        values = zip(*map(msgspec.structs.astuple, part), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column_type(info: inspect.Type) -> ColumnType:
    if isinstance(info, inspect.UnionType):
        (info,) = (each for each in info.types if not isinstance(each, inspect.NoneType))
    return _TYPES[type(info)]
