"""Requests that describe or read topics: which of the coordinator's own they may name, and that they create none."""

import asyncio
import itertools
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i8, i32, i64

from streaming.contract.topics import TopicNames
from streaming.gateway.limits import GatewayLimits
from streaming.gateway.security.internal_topics.catalog import InternalTopics
from streaming.gateway.security.internal_topics.guard import TopicGuard, Verdict, VerdictKind
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA, READING_APIS, api_keys, api_name
from streaming.gateway.wire.codec import KNOWN_VERSIONS, decode_request, encode_request
from streaming.gateway.wire.frames import ByteBuffer, parse_request_head
from streaming.gateway.wire.loop_share import LoopShare

NAMES = TopicNames()
CLIENT, OPERATOR = "User:ANONYMOUS", "User:operator"
VERSIONS = range(KNOWN_VERSIONS[METADATA][0], KNOWN_VERSIONS[METADATA][1] + 1)
BY_NAME = READING_APIS - {METADATA, DESCRIBE_TOPIC_PARTITIONS}
REFUSED = ErrorCode.topic_authorization_failed


async def no_ids(_names: Collection[str]) -> Mapping[bytes, str]:
    return {}


def verdict_on(request: Any, principal: str = CLIENT) -> Verdict:
    async def check() -> Verdict:
        received = ByteBuffer()
        received.feed(encode_request(request, 5, "client"))
        topics = InternalTopics(InternalTopicRules(NAMES, [OPERATOR]), no_ids)
        guard = TopicGuard(topics, GatewayLimits(), LoopShare(), lambda: None, pytest.fail)
        head = parse_request_head(received, 1 << 20)
        assert head is not None
        return guard.check(head, received, principal)

    return asyncio.run(check())


def request_of(api_key: int, version: int, **values: Any) -> Any:
    """A request of these values, as far as its version has them."""
    module: Any = load_payload_module(api_key, version, EntityType.request)
    request_type = getattr(module, f"{api_name(api_key)}Request")
    known = {each.name for each in fields(request_type)}
    return request_type(**{name: value for name, value in values.items() if name in known})


def metadata_request(version: int, topics: Sequence[str] | None, *, may_create: bool = True) -> Any:
    module: Any = load_payload_module(METADATA, version, EntityType.request)
    with_id = {"topic_id": None} if version >= 10 else {}
    entries = None if topics is None else tuple(module.MetadataRequestTopic(name=each, **with_id) for each in topics)
    options = {"allow_auto_topic_creation": may_create, "include_topic_authorized_operations": False}
    options["include_cluster_authorized_operations"] = False
    return request_of(METADATA, version, topics=entries, **options)


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 4])
def test_metadata_creates_no_internal_topic(version: int) -> None:
    named = ["orders", NAMES.rebalances]
    verdict = verdict_on(metadata_request(version, named))
    assert verdict.kind is VerdictKind.REPLACE
    assert verdict.rest is not None
    assert decode_request(verdict.rest, METADATA, version) == (
        "client",
        metadata_request(version, named, may_create=False),
    )
    assert verdict_on(metadata_request(version, named, may_create=False)).kind is VerdictKind.PASS
    assert verdict_on(metadata_request(version, ["orders"])).kind is VerdictKind.PASS
    assert verdict_on(metadata_request(version, named), OPERATOR).kind is VerdictKind.PASS


@pytest.mark.parametrize("version", [each for each in VERSIONS if each < 4])
def test_metadata_of_a_version_that_always_creates_asks_for_no_internal_topic(version: int) -> None:
    verdict = verdict_on(metadata_request(version, ["orders", NAMES.requests, NAMES.rebalances]))
    assert verdict.rest is not None
    assert decode_request(verdict.rest, METADATA, version)[1] == metadata_request(version, ["orders"])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_metadata_answer_is_edited(version: int) -> None:
    everything = metadata_request(version, None if version else ())
    for request, principal in itertools.product(
        (everything, metadata_request(version, ["orders"])), (CLIENT, OPERATOR)
    ):
        verdict = verdict_on(request, principal)
        assert verdict.kind is VerdictKind.PASS
        assert verdict.edit is not None


def partition(module: Any, name: str) -> Any:
    values = {
        "partition": i32(0),
        "partition_index": i32(0),
        "current_leader_epoch": i32(-1),
        "leader_epoch": i32(0),
        "timestamp": i64(-1),
        "fetch_offset": i64(0),
        "last_fetched_epoch": i32(-1),
        "log_start_offset": i64(-1),
        "partition_max_bytes": i32(1),
        "max_num_offsets": i32(1),
    }
    entry_type = getattr(module, name)
    return entry_type(**{each.name: values[each.name] for each in fields(entry_type) if each.name in values})


def reading_request(api_key: int, version: int, topics: Sequence[str]) -> Any:
    """A request that reads or describes topics by name."""
    module: Any = load_payload_module(api_key, version, EntityType.request)
    options = {"replica_id": -1, "isolation_level": i8(0), "timeout": timedelta(0), "max_wait": timedelta(0)}
    options |= {"min_bytes": i32(0), "max_bytes": i32(1), "session_id": i32(0), "session_epoch": i32(-1)}
    options |= {"forgotten_topics_data": (), "rack_id": "", "include_synonyms": False, "include_documentation": False}
    match api_name(api_key):
        case "Fetch":
            one = (partition(module, "FetchPartition"),)
            topics_of = tuple(module.FetchTopic(topic=each, partitions=one) for each in topics)
        case "ListOffsets":
            one = (partition(module, "ListOffsetsPartition"),)
            topics_of = tuple(module.ListOffsetsTopic(name=each, partitions=one) for each in topics)
        case "OffsetForLeaderEpoch":
            one = (partition(module, "OffsetForLeaderPartition"),)
            topics_of = tuple(module.OffsetForLeaderTopic(topic=each, partitions=one) for each in topics)
        case "DescribeProducers":
            topics_of = tuple(module.TopicRequest(name=each, partition_indexes=(i32(0),)) for each in topics)
        case "DescribeConfigs":
            resource = module.DescribeConfigsResource
            resources = [resource(resource_type=i8(2), resource_name=each, configuration_keys=None) for each in topics]
            return request_of(api_key, version, resources=tuple(resources), **options)
        case name:
            raise AssertionError(name)
    return request_of(api_key, version, topics=topics_of, **options)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (key, version)
        for key in sorted(BY_NAME)
        for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
        if key not in api_keys(["Fetch"]) or 4 <= version < 13
    ],
)
def test_what_clients_may_not_read_is_refused_and_the_rest_goes_to_the_broker(api_key: int, version: int) -> None:
    request = reading_request(api_key, version, ["orders", NAMES.requests, NAMES.journal])
    verdict = verdict_on(request)
    assert verdict.kind is VerdictKind.REFUSE
    assert verdict.rest is not None
    assert decode_request(verdict.rest, api_key, version)[1] == reading_request(
        api_key, version, ["orders", NAMES.journal]
    )
    assert verdict.refusal is not None
    (refused,) = next(
        value
        for each in fields(verdict.refusal.answer)
        if isinstance(value := getattr(verdict.refusal.answer, each.name), tuple)
    )
    entries = getattr(refused, "partitions", None) or (refused,)
    errors = {getattr(entry, "error_code", None) for entry in entries}
    assert errors == {REFUSED}
    assert verdict_on(request, OPERATOR).kind is VerdictKind.PASS
    assert verdict_on(reading_request(api_key, version, [NAMES.journal])).kind is VerdictKind.PASS


def test_an_empty_name_is_left_to_the_broker() -> None:
    request = reading_request(
        *next((key, KNOWN_VERSIONS[key][1]) for key in api_keys(["ListOffsets"])), ["", NAMES.requests]
    )
    assert verdict_on(request).kind is VerdictKind.REFUSE


def test_a_description_of_partitions_is_edited_by_what_it_asks_for() -> None:
    module: Any = load_payload_module(DESCRIBE_TOPIC_PARTITIONS, 0, EntityType.request)

    def request(*names: str) -> Any:
        topics = tuple(module.TopicRequest(name=each) for each in names)
        return module.DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=i32(2_000), cursor=None)

    for names in ((), ("orders",), (NAMES.requests,)):
        verdict = verdict_on(request(*names))
        assert verdict.kind is VerdictKind.PASS
        assert verdict.edit is not None


def test_a_metadata_request_by_id_passes_and_its_answer_is_edited() -> None:
    module: Any = load_payload_module(METADATA, 12, EntityType.request)
    topics = (module.MetadataRequestTopic(name=None, topic_id=uuid.UUID(int=7)),)
    options = {"allow_auto_topic_creation": True, "include_topic_authorized_operations": False}
    verdict = verdict_on(module.MetadataRequest(topics=topics, **options))
    assert verdict.kind is VerdictKind.PASS
    assert verdict.edit is not None
