"""Takes internal topics out of a request, and adds their refusal to the response, as a broker does with ACLs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from kio.index import load_entity_module, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i64
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.wire.api_keys import FETCH, PRODUCE, api_keys, api_name
from streaming.gateway.wire.frames import FrameRefused, RefusalReason
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps

__all__ = ["GUARDED_APIS", "PartialRefusal", "refuse_topics"]

REFUSED = ErrorCode.topic_authorization_failed
(ADD_PARTITIONS_TO_TXN,) = api_keys(["AddPartitionsToTxn"])
TOPIC_RESOURCE = 2
"""The resource type of topics in AlterConfigs."""

MAX_REFUSED = 1_000
"""The most topics and partitions that a response refuses: the internal topics have tens of partitions."""

NO_OFFSET = i64(-1)
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


@dataclass(frozen=True)
class _Api:
    """Where an API has its topics. ``refuse`` makes the response's entry, given its module and the request's entry."""

    entries: str
    results: str
    refuse: Callable[[Any, Any], Entity]


def refuse_topics(payload: Any, guards: Guards) -> Steps[PartialRefusal | None]:
    """Return the refusal of a request's guarded topics; None if it has none.

    Raises :class:`FrameRefused` for a request between brokers, which no client sends, and for one with more than
    :data:`MAX_REFUSED` guarded topics and partitions.
    """
    key, version = payload.__api_key__, payload.__version__
    if key == ADD_PARTITIONS_TO_TXN:
        return (yield from _refuse_partitions_of_transaction(payload, guards))
    api = _api(key, version)
    guarded, rest = yield from _split(getattr(payload, api.entries), guards)
    if not guarded:
        return None
    _limit(key, sum(1 + len(_partitions(entry)) for entry in guarded))
    responses = load_entity_module(api_key_map[key], version, EntityType.response)
    refused = tuple(api.refuse(responses, entry) for entry in guarded)
    answer = _made(load_response_schema(key, version), **{api.results: refused})
    request = replace(payload, **{api.entries: tuple(rest)})
    session_epoch = getattr(payload, "session_epoch", None)
    if session_epoch is not None and session_epoch not in FULL_FETCH_EPOCHS:
        # The client fetches without a session next, with all partitions: so the refusal is repeated.
        answer = replace(answer, error_code=ErrorCode.fetch_session_id_not_found, responses=())
        return PartialRefusal(None, _unchanged, answer)
    if session_epoch is not None:
        request = replace(request, **SESSIONLESS)

    def merge(response: Any) -> Entity:
        return replace(response, **{api.results: getattr(response, api.results) + refused})  # type: ignore[no-any-return]

    return PartialRefusal(request if rest else None, merge, answer)


def _split(entries: Sequence[Any], guards: Guards) -> Steps[tuple[list[Any], list[Any]]]:
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
    guarded, _ = yield from _split(topics, guards)
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


def _partitions(entry: Any) -> Sequence[Any]:
    """Return the partitions of a request's topic for which the response has an entry each."""
    return getattr(entry, "partition_data", None) or getattr(entry, "partitions", None) or ()


def _api(key: int, version: int) -> _Api:
    if key == DELETE_TOPICS and version < DELETE_BY_ID_SINCE:
        return replace(_APIS[key], entries="topic_names")
    return _APIS[key]


def _name(entry: Any) -> str | bytes:
    """Return the name of a request's topic, or its id; an empty name for a resource that is no topic."""
    if isinstance(entry, str):
        return entry
    if hasattr(entry, "resource_type"):
        return entry.resource_name if entry.resource_type == TOPIC_RESOURCE else ""
    name = getattr(entry, "name", None) or getattr(entry, "topic", None)
    if name:
        return name  # type: ignore[no-any-return]
    return entry.topic_id.bytes if entry.topic_id is not None else b""


def _made(entity_type: Any, **values: object) -> Any:
    """Make an entity from those values for which its version has fields."""
    known = {"throttle_time": timedelta(0), "error_code": ErrorCode.none, "session_id": i32(0), **values}
    return entity_type(**{each.name: known[each.name] for each in fields(entity_type) if each.name in known})


def _unchanged(response: Entity) -> Entity:
    return response


def _produced(module: Any, topic: Any) -> Entity:
    partitions = tuple(
        _made(
            module.PartitionProduceResponse,
            index=each.index,
            error_code=REFUSED,
            base_offset=NO_OFFSET,
            log_append_time=None,
            log_start_offset=NO_OFFSET,
            record_errors=(),
            error_message=None,
        )
        for each in topic.partition_data
    )
    return module.TopicProduceResponse(name=topic.name, partition_responses=partitions)  # type: ignore[no-any-return]


def _fetched(module: Any, topic: Any) -> Entity:
    partitions = tuple(
        _made(
            module.PartitionData,
            partition_index=each.partition,
            error_code=REFUSED,
            high_watermark=NO_OFFSET,
            last_stable_offset=NO_OFFSET,
            log_start_offset=NO_OFFSET,
            aborted_transactions=(),
            records=b"",
        )
        for each in topic.partitions
    )
    named = {name: getattr(topic, name) for name in ("topic", "topic_id") if hasattr(topic, name)}
    return _made(module.FetchableTopicResponse, partitions=partitions, **named)  # type: ignore[no-any-return]


def _created(module: Any, topic: Any) -> Entity:
    unknown = {"topic_id": None, "num_partitions": i32(-1), "replication_factor": i16(-1), "configs": ()}
    return _made(  # type: ignore[no-any-return]
        module.CreatableTopicResult, name=topic.name, error_code=REFUSED, error_message=None, **unknown
    )


def _deleted(module: Any, topic: Any) -> Entity:
    name, topic_id = (topic, None) if isinstance(topic, str) else (topic.name, topic.topic_id)
    return _made(  # type: ignore[no-any-return]
        module.DeletableTopicResult, name=name, topic_id=topic_id, error_code=REFUSED, error_message=None
    )


def _records_deleted(module: Any, topic: Any) -> Entity:
    partitions = tuple(
        module.DeleteRecordsPartitionResult(
            partition_index=each.partition_index, low_watermark=NO_OFFSET, error_code=REFUSED
        )
        for each in topic.partitions
    )
    return module.DeleteRecordsTopicResult(name=topic.name, partitions=partitions)  # type: ignore[no-any-return]


def _partitions_created(module: Any, topic: Any) -> Entity:
    return _made(  # type: ignore[no-any-return]
        module.CreatePartitionsTopicResult, name=topic.name, error_code=REFUSED, error_message=None
    )


def _configs_altered(module: Any, resource: Any) -> Entity:
    return module.AlterConfigsResourceResponse(  # type: ignore[no-any-return]
        error_code=REFUSED,
        error_message=None,
        resource_type=i8(TOPIC_RESOURCE),
        resource_name=resource.resource_name,
    )


DELETE_BY_ID_SINCE = 6


def _keys(*names: str) -> tuple[int, ...]:
    return tuple(key for name in names for key in api_keys([name]))


CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = _keys("CreateTopics", "DeleteTopics", "DeleteRecords")
CREATE_PARTITIONS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = _keys(
    "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs"
)

_APIS: Mapping[int, _Api] = MappingProxyType(
    {
        PRODUCE: _Api("topic_data", "responses", _produced),
        FETCH: _Api("topics", "responses", _fetched),
        CREATE_TOPICS: _Api("topics", "topics", _created),
        DELETE_TOPICS: _Api("topics", "responses", _deleted),
        DELETE_RECORDS: _Api("topics", "topics", _records_deleted),
        CREATE_PARTITIONS: _Api("topics", "results", _partitions_created),
        ALTER_CONFIGS: _Api("resources", "responses", _configs_altered),
        INCREMENTAL_ALTER_CONFIGS: _Api("resources", "responses", _configs_altered),
    }
)

GUARDED_APIS = frozenset({*_APIS, ADD_PARTITIONS_TO_TXN})
"""The APIs whose topics are checked. Operations on the whole cluster need rights that only operators have."""
