"""Takes internal topics out of a request, and adds their refusal to the response, as a broker does with ACLs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, NamedTuple

from kio.index import load_entity_module, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.wire.api_keys import ADD_PARTITIONS_TO_TXN, DELETE_TOPICS, api_keys, api_name
from streaming.gateway.wire.frames import FrameRefused, RefusalReason
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps

REFUSED = ErrorCode.topic_authorization_failed
DELETE_BY_ID_SINCE = 6
TOPIC_RESOURCE = 2
"""The resource type of topics in AlterConfigs."""

MAX_REFUSED = 1_000
"""The most topics and partitions that a response refuses: the internal topics have tens of partitions."""

REFUSAL = {
    **dict.fromkeys(("base_offset", "log_start_offset", "high_watermark", "last_stable_offset"), i64(-1)),
    **dict.fromkeys(("timestamp", "offset", "end_offset"), i64(-1)),
    **dict.fromkeys(("record_errors", "aborted_transactions", "configs", "active_producers"), ()),
    **dict.fromkeys(("error_message", "log_append_time"), None),
    "error_code": REFUSED,
    "leader_epoch": i32(-1),
    "low_watermark": i64(-1),
    "num_partitions": i32(-1),
    "records": b"",
    "replication_factor": i16(-1),
}
"""What the response says of a refused topic or partition, in those of these fields that it has."""

FULL_FETCH_EPOCHS = (0, -1)
"""The epochs of a Fetch request that names all its partitions; any other one continues a session (KIP-227)."""

SESSIONLESS = {"session_id": i32(0), "session_epoch": i32(-1)}

Guards = Callable[[str | bytes], bool]
"""Whether a topic's name, or its id as bytes, is that of a guarded topic."""


@dataclass(frozen=True)
class PartialRefusal:
    """What becomes of a request that names guarded topics.

    request: the rest of it, for the broker; None if nothing is left.
    merge: adds the refused topics to the broker's response.
    answer: the response if nothing is left for the broker.
    """

    request: RequestPayload | None
    merge: Callable[[Any], Entity]
    answer: Entity


class _Entries(NamedTuple):
    """The entries of topics, or of a topic's partitions: the field of the request, that of the response, and its type.

    partitions: None if the response has no entries for partitions.
    """

    requested: str
    answered: str
    answer_type: str
    partitions: "_Entries | None" = None


_PRODUCED = _Entries("partition_data", "partition_responses", "PartitionProduceResponse")
_FETCHED = _Entries("partitions", "partitions", "PartitionData")
_TRUNCATED = _Entries("partitions", "partitions", "DeleteRecordsPartitionResult")
_LISTED = _Entries("partitions", "partitions", "ListOffsetsPartitionResponse")
_COMPARED = _Entries("partitions", "partitions", "EpochEndOffset")
_WRITTEN = _Entries("partition_indexes", "partitions", "PartitionResponse")

_TOPICS: Mapping[str, _Entries] = {
    "Produce": _Entries("topic_data", "responses", "TopicProduceResponse", _PRODUCED),
    "Fetch": _Entries("topics", "responses", "FetchableTopicResponse", _FETCHED),
    "ListOffsets": _Entries("topics", "topics", "ListOffsetsTopicResponse", _LISTED),
    "OffsetForLeaderEpoch": _Entries("topics", "topics", "OffsetForLeaderTopicResult", _COMPARED),
    "DescribeProducers": _Entries("topics", "topics", "TopicResponse", _WRITTEN),
    "DescribeConfigs": _Entries("resources", "results", "DescribeConfigsResult"),
    "CreateTopics": _Entries("topics", "topics", "CreatableTopicResult"),
    "DeleteTopics": _Entries("topics", "responses", "DeletableTopicResult"),
    "DeleteRecords": _Entries("topics", "topics", "DeleteRecordsTopicResult", _TRUNCATED),
    "CreatePartitions": _Entries("topics", "results", "CreatePartitionsTopicResult"),
    "AlterConfigs": _Entries("resources", "responses", "AlterConfigsResourceResponse"),
    "IncrementalAlterConfigs": _Entries("resources", "responses", "AlterConfigsResourceResponse"),
}

GUARDED_APIS = api_keys(_TOPICS) | {ADD_PARTITIONS_TO_TXN}
"""The APIs whose topics are checked. Operations on the whole cluster need rights that only operators have."""


def refuse_topics(payload: Any, guards: Guards) -> Steps[PartialRefusal | None]:
    """Return the refusal of a request's guarded topics; None if it has none.

    Raises :class:`FrameRefused` for a request between brokers, which no client sends, and for one with more than
    :data:`MAX_REFUSED` guarded topics and partitions.
    """
    key, version = payload.__api_key__, payload.__version__
    if key == ADD_PARTITIONS_TO_TXN:
        return (yield from _refuse_partitions_of_transaction(payload, guards))
    topics = _TOPICS[api_name(key)]
    if key == DELETE_TOPICS and version < DELETE_BY_ID_SINCE:
        topics = topics._replace(requested="topic_names")
    guarded, rest = yield from split_topics(getattr(payload, topics.requested), guards)
    if not guarded:
        return None
    of_topic = topics.partitions
    _limit(key, len(guarded) + sum(len(getattr(entry, of_topic.requested)) for entry in guarded if of_topic))
    module = load_entity_module(api_key_map[key], version, EntityType.response)
    refused = tuple(_refused(topics, module, entry) for entry in guarded)
    answer = _made(load_response_schema(key, version), **{topics.answered: refused})
    request = replace(payload, **{topics.requested: tuple(rest)})
    session_epoch = getattr(payload, "session_epoch", None)
    if session_epoch is not None and session_epoch not in FULL_FETCH_EPOCHS:
        # The client fetches without a session next, with all partitions: so the refusal is repeated.
        answer = replace(answer, error_code=ErrorCode.fetch_session_id_not_found, responses=())
        return PartialRefusal(None, _unchanged, answer)
    if session_epoch is not None:
        request = replace(request, **SESSIONLESS)

    def merge(response: Any) -> Entity:
        return replace(response, **{topics.answered: getattr(response, topics.answered) + refused})  # type: ignore[no-any-return]

    return PartialRefusal(request if rest else None, merge, answer)


def split_topics(entries: Sequence[Any], guards: Guards) -> Steps[tuple[list[Any], list[Any]]]:
    """Return the entries of guarded topics, and the others."""
    guarded: list[Any] = []
    rest: list[Any] = []
    for number, entry in enumerate(entries, 1):
        (guarded if guards(_name(entry)) else rest).append(entry)
        if number % ENTRIES_PER_STEP == 0:
            yield
    return guarded, rest


def _refuse_partitions_of_transaction(payload: Any, guards: Guards) -> Steps[PartialRefusal | None]:
    """Add none of the topics to the transaction if one of them is refused, as a broker."""
    if not hasattr(payload, "v3_and_below_topics") or getattr(payload, "transactions", None):
        raise FrameRefused(RefusalReason.INTERNAL_TOPIC, f"{api_name(ADD_PARTITIONS_TO_TXN)} between brokers")
    topics = payload.v3_and_below_topics
    guarded, _ = yield from split_topics(topics, guards)
    if not guarded:
        return None
    _limit(ADD_PARTITIONS_TO_TXN, sum(1 + len(topic.partitions) for topic in topics))
    version = payload.__version__
    module: Any = load_entity_module("add_partitions_to_txn", version, EntityType.response)
    results = tuple(
        module.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                module.AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=REFUSED if guards(topic.name) else ErrorCode.operation_not_attempted,
                )
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
    answer = _made(load_response_schema(ADD_PARTITIONS_TO_TXN, version), results_by_topic_v3_and_below=results)
    return PartialRefusal(None, _unchanged, answer)


def _limit(key: int, refused: int) -> None:
    if refused > MAX_REFUSED:
        detail = f"{api_name(key)} with {refused} refused topics and partitions"
        raise FrameRefused(RefusalReason.TOO_MANY_ENTRIES, detail)


def _name(entry: Any) -> str | bytes:
    """Return the name of a request's topic, or its id; an empty name for a resource that is no topic."""
    if isinstance(entry, str):
        return entry
    if hasattr(entry, "resource_type"):
        return entry.resource_name if entry.resource_type == TOPIC_RESOURCE else ""
    name = getattr(entry, "name", None) or getattr(entry, "topic", None)
    if name:
        return name  # type: ignore[no-any-return]
    topic_id = getattr(entry, "topic_id", None)
    return topic_id.bytes if topic_id is not None else b""


def _made(entity_type: Any, **values: object) -> Any:
    """Make an entity from those values for which its version has fields."""
    known = {"throttle_time": timedelta(0), "error_code": ErrorCode.none, "session_id": i32(0), **values}
    return entity_type(**{each.name: known[each.name] for each in fields(entity_type) if each.name in known})


def _unchanged(response: Entity) -> Entity:
    return response


def _refused(entries: _Entries, module: Any, entry: Any) -> Entity:
    """Make the response's entry, of a type of ``module``, for the request's entry of a refused topic or partition."""
    if isinstance(entry, str):
        named: dict[str, Any] = {"name": entry}
    elif isinstance(entry, int):
        named = {"partition_index": entry}
    else:
        named = {each.name: getattr(entry, each.name) for each in fields(entry)}
    # Fetch has different names for the index of a partition.
    values = {"topic_id": None, "partition_index": named.get("partition"), **named, **REFUSAL}
    of_topic = entries.partitions
    if of_topic is not None:
        partitions = getattr(entry, of_topic.requested)
        values[of_topic.answered] = tuple(_refused(of_topic, module, each) for each in partitions)
    return _made(getattr(module, entries.answer_type), **values)  # type: ignore[no-any-return]
