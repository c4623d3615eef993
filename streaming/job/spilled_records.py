"""Records of one group in a temporary file, for a group whose requests in one batch are too large for the memory."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

from streaming.job.log_order import sort_records
from streaming.job.rows.records import KafkaRecord

LOCAL_DIRECTORIES = "SPARK_LOCAL_DIRS"
"""The environment variable with which Spark names the folders for temporary files to its Python workers."""

_NOT_THERE = -1
_SPOT = Struct(">qqq")
"""Where key and value are in the file, and their lengths; the length of a null is -1."""


class SpilledRecords:
    """Takes records in any order and gives them back in the log's order, slice by slice.

    The memory holds the place of each record only.
    """

    def __init__(self) -> None:
        folder = os.environ.get(LOCAL_DIRECTORIES, "").split(",")[0]
        # It is closed by slices(), or with this object.
        self._file = tempfile.TemporaryFile(dir=folder if os.path.isdir(folder) else None)  # noqa: SIM115
        self._end = 0
        self._places: list[KafkaRecord] = []

    def add(self, records: Iterable[KafkaRecord]) -> None:
        """Write records to the file."""
        for record in records:
            key, value = record.key or b"", record.value or b""
            lengths = (_NOT_THERE if part is None else len(part) for part in (record.key, record.value))
            self._places.append(record._replace(key=None, value=_SPOT.pack(self._end, *lengths)))
            self._file.write(key)
            self._file.write(value)
            self._end += len(key) + len(value)

    def slices(self, most_bytes: int) -> Iterator[Sequence[KafkaRecord]]:
        """Read the records back, in slices of at most so many bytes of keys and values, or of one record."""
        sort_records(self._places)
        records: list[KafkaRecord] = []
        size = 0
        for place in self._places:
            start, key_length, value_length = _SPOT.unpack(place.value or b"")
            length = max(key_length, 0) + max(value_length, 0)
            if records and size + length > most_bytes:
                yield records
                records, size = [], 0
            self._file.seek(start)
            key, value = self._read(key_length), self._read(value_length)
            records.append(place._replace(key=key, value=value))
            size += length
        yield records
        self._file.close()

    def _read(self, length: int) -> bytes | None:
        return None if length == _NOT_THERE else self._file.read(length)
