"""Takes internal topics out of the brokers' answers that list topics, or marks them there.

A broker leaves out topics that the client may not describe, and marks its own as internal: consumers with a pattern do
not subscribe to those by default.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kio.static.protocol import Entity

from streaming.gateway.security.internal_topics.metadata_answer import edit_metadata
from streaming.gateway.security.internal_topics.refusals import REFUSED, split_topics
from streaming.gateway.security.internal_topics.rules import InternalTopicRules, View
from streaming.gateway.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA, api_keys, api_name
from streaming.gateway.wire.codec import decode_response_in_steps, encode_response_in_steps
from streaming.gateway.wire.frames import LENGTH_SIZE
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps

Edit = Callable[[bytes], bytes | Steps[bytes]]
"""Returns the frame for the client, given the broker's, at once or in steps. Raises one of MALFORMED."""


_LISTS: Mapping[str, Sequence[str]] = {
    "ListPartitionReassignments": ("topics",),
    "DescribeLogDirs": ("results", "topics"),
    "ListConfigResources": ("config_resources",),
    "DescribeTransactions": ("transaction_states", "topics"),
    "ElectLeaders": ("replica_election_results",),
}
"""The path to the topics in the answers of APIs that name topics which the request need not name."""

DESCRIBING_APIS = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})
"""APIs whose answers mark internal topics, and whose requests name topics or ask for all."""

LISTING_APIS = DESCRIBING_APIS | api_keys(_LISTS)
"""The APIs whose answers are edited."""


def edit_answer(rules: InternalTopicRules, api_key: int, version: int, view: View) -> Edit | None:
    """Return what edits the brokers' answers to a request of an API; None if they stay as they are."""
    if api_key == METADATA:
        return lambda frame: edit_metadata(frame, version, rules, view)
    if api_key == DESCRIBE_TOPIC_PARTITIONS:
        return lambda frame: _edited(frame, api_key, version, lambda answer: _described(answer, rules, view))
    if view is View.WHOLE:
        return None
    path = _LISTS[api_name(api_key)]
    return lambda frame: _edited(frame, api_key, version, lambda answer: _without(answer, path, rules))


def _edited(frame: bytes, api_key: int, version: int, edit: Callable[[Any], Steps[Entity]]) -> Steps[bytes]:
    answer = yield from decode_response_in_steps(frame, api_key, version)
    edited = yield from edit(answer)
    correlation_id = int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True)
    return (yield from encode_response_in_steps(edited, correlation_id))


def _without(entity: Any, path: Sequence[str], rules: InternalTopicRules) -> Steps[Any]:
    """An entity without the internal topics in the entries at the end of a path."""
    name, *rest = path
    entries = getattr(entity, name) or ()
    left = []
    if rest:
        for number, entry in enumerate(entries, 1):
            left.append((yield from _without(entry, rest, rules)))
            if number % ENTRIES_PER_STEP == 0:
                yield
    else:
        _, left = yield from split_topics(entries, lambda topic: topic in rules.all)
    return replace(entity, **{name: tuple(left)})


def _described(answer: Any, rules: InternalTopicRules, view: View) -> Steps[Entity]:
    """The answer to DescribeTopicPartitions."""
    topics = []
    for number, topic in enumerate(answer.topics, 1):
        if number % ENTRIES_PER_STEP == 0:
            yield
        if topic.name not in rules.all:
            topics.append(topic)
        elif view is View.BY_NAME and topic.name in rules.unreadable:
            topics.append(replace(topic, error_code=REFUSED, topic_id=None, is_internal=False, partitions=()))
        elif view is not View.NONE:
            topics.append(replace(topic, is_internal=True))
    return replace(answer, topics=tuple(topics))  # type: ignore[no-any-return]
