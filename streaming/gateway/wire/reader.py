"""Reads frames as a server must that does not trust their sender.

kio's own reader is used for entities without arrays only. It reserves memory for as many items as an array announces:
a request of 20 bytes that announces 2^32 ends the process. It also reads an entity in a single call: 400,000 strings
take a quarter of a second, in which the event loop would serve nobody else; here, a large entity is read in steps. And
it raises ``KeyError`` for a tagged field that its schemas lack, which the protocol wants skipped (KIP-482), and
``OverflowError`` for a time beyond the range of a ``timedelta``.
"""

from collections.abc import Mapping
from typing import Any

from kio.serial import readers
from kio.serial.errors import BufferUnderflow, SerialError, UnexpectedNull

from streaming.gateway.wire.layout import EntityLayout, FieldLayout
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps


class TooManyEntries(SerialError):
    """The arrays and tagged fields of a frame have more entries than allowed."""


class FrameReader:
    """Reads a frame from the position ``at`` on, in steps of :data:`ENTRIES_PER_STEP` entries.

    Its methods raise one of kio's ``SerialError`` or ``ValueError``, and :class:`TooManyEntries` as soon as the arrays
    and tagged fields announce more than ``max_entries`` together.
    """

    def __init__(self, frame: bytes, at: int, max_entries: int) -> None:
        self.at = at
        self._frame = frame
        self._entries_left = max_entries
        self._read_in_step = 0

    def client_id(self, request_type: Any) -> Steps[str]:
        """Read the rest of a request's header from the client id on; an empty id for null.

        The client id has a legacy length even in flexible headers.
        """
        client_id = self._next(readers.read_nullable_legacy_string)
        if request_type.__header_schema__.__flexible__ and (count := self._next(readers.read_unsigned_varint)):
            yield from self._tagged_fields(count, {}, {})
        return client_id or ""

    def end_of_response_header(self, response_type: Any) -> Steps[None]:
        """Read the rest of a response's header from behind the correlation id."""
        if response_type.__header_schema__.__flexible__ and (count := self._next(readers.read_unsigned_varint)):
            yield from self._tagged_fields(count, {}, {})

    def entity(self, layout: EntityLayout) -> Steps[Any]:
        """Read an entity as an object."""
        if layout.read is not None:
            try:
                return self._next(layout.read)
            except KeyError:
                # A tagged field that the layout lacks.
                pass
        values = dict(layout.absent)
        for field in layout.fields:
            values[field.name] = self._next(field.read) if field.is_value else (yield from self.field(field))
        if layout.is_flexible and (count := self._next(readers.read_unsigned_varint)):
            yield from self._tagged_fields(count, layout.tagged, values)
        return layout.make(**values)

    def field(self, field: FieldLayout) -> Steps[Any]:
        """Read a field as an object's attribute."""
        if field.is_array:
            return (yield from self._array(field))
        if field.entity is None:
            return self._next(field.read)
        if field.is_nullable and self._next(readers.read_int8) < 0:
            return None
        return (yield from self.entity(field.entity))

    def _array(self, field: FieldLayout) -> Steps[Any]:
        count = self._array_length(field.is_flexible)
        if count is None:
            return field.null()
        self._announce(count)
        items = []
        read, entity = field.read, field.entity
        for _ in range(count):
            try:
                item = self._next(read) if read is not None else (yield from self.entity(entity))  # type: ignore[arg-type]
            except KeyError:
                assert entity is not None, "only entities have tagged fields"
                item = yield from self.entity(entity)
            items.append(item)
            if self._is_end_of_step():
                yield
        return field.collect(items)

    def _array_length(self, is_flexible: bool) -> int | None:
        if is_flexible:
            return self._next(readers.read_compact_array_length)  # type: ignore[no-any-return]
        length: int = self._next(readers.read_legacy_array_length)
        if length < -1:
            raise UnexpectedNull(f"an array of {length} items")
        return length if length >= 0 else None

    def _tagged_fields(self, count: int, known: Mapping[int, FieldLayout], values: dict[str, Any]) -> Steps[None]:
        """Read that many tagged fields, the known ones into ``values``."""
        self._announce(count)
        for _ in range(count):
            tag = self._next(readers.read_unsigned_varint)
            size = self._next(readers.read_unsigned_varint)
            end = self.at + size
            if end > len(self._frame):
                raise BufferUnderflow(f"tagged field {tag} ends after the frame")
            if tag in known:
                values[known[tag].name] = yield from self.field(known[tag])
            self.at = end
            if self._is_end_of_step():
                yield

    def _announce(self, count: int) -> None:
        if count > len(self._frame) - self.at:
            raise BufferUnderflow(f"{count} entries, of which each has a byte or more")
        self._entries_left -= count
        if self._entries_left < 0:
            raise TooManyEntries("the arrays have too many entries")

    def _is_end_of_step(self) -> bool:
        self._read_in_step += 1
        if self._read_in_step < ENTRIES_PER_STEP:
            return False
        self._read_in_step = 0
        return True

    def _next(self, read: Any) -> Any:
        value, size = read(self._frame, self.at)
        self.at += size
        return value
