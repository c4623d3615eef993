"""Writes frames in steps, so that a large response does not hold the event loop."""

import io
from typing import Any

from kio.serial import writers

from streaming.gateway.wire.layout import EntityLayout, FieldLayout
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps

NULL_ENTITY, ENTITY = -1, 1
"""What precedes an entity that can be null (KIP-893)."""


class FrameWriter:
    """Writes to a buffer, in steps of :data:`ENTRIES_PER_STEP` array entries.

    Its methods raise what kio's writers raise. An array may be any iterable with a length, such as a :class:`LazyList`.
    """

    def __init__(self, buffer: io.BytesIO) -> None:
        self._buffer: Any = buffer
        self._written_in_step = 0

    def entity(self, layout: EntityLayout, source: Any) -> Steps[None]:
        """Write an object as an entity."""
        if layout.write is not None:
            layout.write(self._buffer, source)
            return
        for field in layout.fields:
            value = getattr(source, field.name) if field.name else field.default
            if field.is_value:
                field.write(self._buffer, value)  # type: ignore[misc]
            else:
                yield from self.field(field, value)
        if layout.is_flexible:
            yield from self._tagged_fields(layout, source)

    def field(self, field: FieldLayout, value: Any) -> Steps[None]:
        """Write a field, given the object's attribute."""
        if field.is_array:
            yield from self._array(field, value)
        elif field.entity is None:
            field.write(self._buffer, value)  # type: ignore[misc]
        else:
            if field.is_nullable:
                writers.write_int8(self._buffer, NULL_ENTITY if value is None else ENTITY)  # type: ignore[arg-type]
            if value is not None:
                yield from self.entity(field.entity, value)

    def _array(self, field: FieldLayout, items: Any) -> Steps[None]:
        write: Any = writers.write_compact_array_length if field.is_flexible else writers.write_legacy_array_length
        write(self._buffer, -1 if items is None and field.is_nullable else len(items or ()))
        for item in items or ():
            if field.write is not None:
                field.write(self._buffer, item)
            else:
                yield from self.entity(field.entity, item)  # type: ignore[arg-type]
            self._written_in_step += 1
            if self._written_in_step >= ENTRIES_PER_STEP:
                self._written_in_step = 0
                yield

    def _tagged_fields(self, layout: EntityLayout, source: Any) -> Steps[None]:
        write_varint: Any = writers.write_unsigned_varint
        present = {}
        for tag, field in layout.tagged.items():
            value = getattr(source, field.name)
            if value != field.default:
                content = io.BytesIO()
                yield from FrameWriter(content).field(field, value)
                present[tag] = content.getvalue()
        write_varint(self._buffer, len(present))
        for tag, encoded in present.items():
            write_varint(self._buffer, tag)
            write_varint(self._buffer, len(encoded))
            self._buffer.write(encoded)
