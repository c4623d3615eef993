"""Requests for descriptions of topics: whether they ask for all, and that they create no internal topic."""

from dataclasses import replace
from typing import Any

from kio.index import load_request_schema
from kio.serial import readers
from kio.static.protocol import RequestPayload

from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.wire.api_keys import METADATA, api_name
from streaming.gateway.wire.codec import MALFORMED
from streaming.gateway.wire.frames import REQUEST_HEAD, FrameRefused, RefusalReason, RequestHead
from streaming.gateway.wire.reader import FrameReader
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps, run_steps

NULL_FOR_ALL_SINCE = 1
"""The first version of Metadata that asks for all topics with null, and for none with an empty list."""
CREATION_FLAG_SINCE = 4
"""The first version of Metadata that says whether topics are created; a request of an earlier one creates them."""


def asks_for_all(frame: bytes, head: RequestHead) -> bool:
    """Whether a request of an API that describes topics asks for all, and names none.

    Raises :class:`FrameRefused` for a frame that ends before its topics.
    """
    request_type: Any = load_request_schema(head.api_key, head.version)
    reader = FrameReader(frame, REQUEST_HEAD.size, max_entries=len(frame))
    try:
        run_steps(reader.client_id(request_type))
        is_flexible = request_type.__flexible__
        read: Any = readers.read_compact_array_length if is_flexible else readers.read_legacy_array_length
        count, _ = read(frame, reader.at)
    except MALFORMED as failure:
        detail = f"{api_name(head.api_key)} v{head.version}: {failure!r}"
        raise FrameRefused(RefusalReason.UNDECODABLE, detail) from failure
    is_null = count is None or count < 0
    return is_null if head.api_key == METADATA and head.version >= NULL_FOR_ALL_SINCE else is_null or count == 0


def without_creation(payload: Any, rules: InternalTopicRules) -> Steps[RequestPayload | None]:
    """Return the request to send in place of one that could create an internal topic; None if it cannot.

    Such a request creates no other topic either, and one of a version that cannot say so names no internal topic any
    more.
    """
    if payload.__api_key__ != METADATA or not getattr(payload, "allow_auto_topic_creation", True):
        return None
    others = []
    for number, topic in enumerate(payload.topics, 1):
        if topic.name not in rules.all:
            others.append(topic)
        if number % ENTRIES_PER_STEP == 0:
            yield
    if len(others) == len(payload.topics):
        return None
    if payload.__version__ < CREATION_FLAG_SINCE:
        return replace(payload, topics=tuple(others))  # type: ignore[no-any-return]
    return replace(payload, allow_auto_topic_creation=False)  # type: ignore[no-any-return]
