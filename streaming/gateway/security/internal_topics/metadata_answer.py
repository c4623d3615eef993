"""Edits the internal topics in Metadata's answers, without decoding those of all other topics.

An answer that lists all topics is megabytes on a large cluster, and each client with a pattern asks for it. So the
entries are found by their names' bytes: a topic's name is the only text among the topics.
"""

import io
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, NamedTuple

from kio.index import load_entity_module
from kio.schema.errors import ErrorCode
from kio.serial import readers, writers
from kio.static.constants import EntityType
from kio.static.primitive import i32

from streaming.gateway.security.internal_topics.rules import InternalTopicRules, View
from streaming.gateway.wire.frames import LENGTH_SIZE, RESPONSE_HEAD
from streaming.gateway.wire.layout import EntityLayout, layout_of
from streaming.gateway.wire.reader import FrameReader
from streaming.gateway.wire.steps import run_steps
from streaming.gateway.wire.writer import FrameWriter

FLEXIBLE_SINCE = 9
TOPIC_IDS_SINCE = 10
INTERNAL_SINCE = 1
"""The first version that says whether a topic is internal."""

ERROR_BYTES = 2
TOPIC_ID_BYTES = 16
ERRORS_OF_NAMED_TOPICS = frozenset(
    {
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.leader_not_available,
        ErrorCode.invalid_topic_exception,
        ErrorCode.topic_authorization_failed,
    }
)
NO_OPERATIONS = i32(-(2**31))


class _Entry(NamedTuple):
    """A topic's entry in a frame: where it begins, and where its name ends."""

    begin: int
    end_of_name: int


def edit_metadata(frame: bytes, version: int, rules: InternalTopicRules, view: View) -> bytes:
    """Edit the internal topics in a response frame: each is left out, refused, or marked as internal.

    Raises one of :data:`streaming.gateway.wire.codec.MALFORMED`.
    """
    module: Any = load_entity_module("metadata", version, EntityType.response)
    begin = _begin_of_topics(frame, version, module.MetadataResponse)
    is_flexible = version >= FLEXIBLE_SINCE
    read_length: Any = readers.read_compact_array_length if is_flexible else readers.read_legacy_array_length
    count, size = read_length(frame, begin)
    layout = layout_of(module.MetadataResponseTopic, module.MetadataResponseTopic)
    found = sorted((entry, name) for name in rules.all for entry in _entries(frame, begin + size, version, name))
    edited, at = io.BytesIO(), begin + size
    for entry, name in found:
        edited.write(frame[at : entry.begin])
        reader = FrameReader(frame, entry.begin, max_entries=len(frame))
        topic = run_steps(reader.entity(layout))
        at = reader.at
        if view is View.NONE:
            count -= 1
        elif view is not View.WHOLE and name in rules.unreadable:
            edited.write(_encoded(layout, _refused(topic, view)))
        else:
            edited.write(_marked(frame[entry.begin : at], entry.end_of_name - entry.begin, version))
    if not found:
        return frame
    length = io.BytesIO()
    write_length: Any = writers.write_compact_array_length if is_flexible else writers.write_legacy_array_length
    write_length(length, count)
    content = b"".join((frame[LENGTH_SIZE:begin], length.getvalue(), edited.getvalue(), frame[at:]))
    return len(content).to_bytes(LENGTH_SIZE, "big") + content


def _begin_of_topics(frame: bytes, version: int, response_type: Any) -> int:
    reader = FrameReader(frame, RESPONSE_HEAD.size, max_entries=len(frame))
    run_steps(reader.end_of_response_header(response_type))
    for field in layout_of(response_type, response_type).fields:
        if field.name == "topics":
            break
        run_steps(reader.field(field))
    return reader.at


def _entries(frame: bytes, begin: int, version: int, name: str) -> Iterable[_Entry]:
    """The entries of a topic; a client that names it twice may get two."""
    encoded = io.BytesIO()
    write: Any = writers.write_compact_string if version >= FLEXIBLE_SINCE else writers.write_legacy_string
    write(encoded, name)
    at = frame.find(encoded.getvalue(), begin)
    while at >= 0:
        # A compact length is a byte that may be a character of a longer name, but then no error precedes it.
        if _is_error(frame[at - ERROR_BYTES : at]):
            yield _Entry(at - ERROR_BYTES, at + len(encoded.getvalue()))
        at = frame.find(encoded.getvalue(), at + 1)


def _is_error(encoded: bytes) -> bool:
    return int.from_bytes(encoded, "big", signed=True) in {error.value for error in ERRORS_OF_NAMED_TOPICS}


def _marked(entry: bytes, end_of_name: int, version: int) -> bytes:
    if version < INTERNAL_SINCE:
        return entry
    at = end_of_name + (TOPIC_ID_BYTES if version >= TOPIC_IDS_SINCE else 0)
    return entry[:at] + b"\1" + entry[at + 1 :]


def _refused(topic: Any, view: View) -> Any:
    """The entry of a topic that the client may not describe: a broker shows only what the request names it by."""
    hidden = {
        "error_code": ErrorCode.topic_authorization_failed,
        "is_internal": False,
        "partitions": (),
        "topic_authorized_operations": NO_OPERATIONS,
        **({"name": None} if view is View.BY_ID else {"topic_id": None}),
    }
    return replace(topic, **{field.name: hidden[field.name] for field in fields(topic) if field.name in hidden})


def _encoded(layout: EntityLayout, topic: Any) -> bytes:
    buffer = io.BytesIO()
    run_steps(FrameWriter(buffer).entity(layout, topic))
    return buffer.getvalue()
