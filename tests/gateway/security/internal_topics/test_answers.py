"""The brokers' answers that list topics: ordinary clients find none of the coordinator's own in them."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_entity_module, load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i8, i32, i64

from streaming.contract.topics import TopicNames
from streaming.gateway.security.internal_topics.answers import LISTING_APIS, edit_answer
from streaming.gateway.security.internal_topics.rules import InternalTopicRules, View
from streaming.gateway.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA, api_name
from streaming.gateway.wire.codec import KNOWN_VERSIONS, decode_response, encode_response
from streaming.gateway.wire.steps import run_steps

NAMES = TopicNames("p.")
RULES = InternalTopicRules(NAMES)
TOPIC = 2
VERSIONS = range(KNOWN_VERSIONS[METADATA][0], KNOWN_VERSIONS[METADATA][1] + 1)
REFUSED = ErrorCode.topic_authorization_failed
ID = {name: uuid.UUID(int=number + 1) for number, name in enumerate(sorted({*NAMES.all, "orders", "payments"}))}


def made(entity_type: Any, **values: Any) -> Any:
    """An entity of those values for which its version has fields."""
    known = {"throttle_time": timedelta(0), "error_code": ErrorCode.none, **values}
    return entity_type(**{each.name: known[each.name] for each in fields(entity_type) if each.name in known})


def metadata_answer(version: int, names: Collection[str], partitions: int = 3, rules: TopicNames = NAMES) -> Any:
    module: Any = load_entity_module("metadata", version, EntityType.response)
    nodes = (i32(1), i32(2))
    entries = [
        made(
            module.MetadataResponsePartition,
            partition_index=i32(index),
            leader_id=i32(1),
            leader_epoch=i32(0),
            replica_nodes=nodes,
            isr_nodes=nodes,
            offline_replicas=(),
        )
        for index in range(partitions)
    ]
    topics = [
        made(
            module.MetadataResponseTopic,
            name=name,
            topic_id=ID.get(name, uuid.UUID(int=99)),
            is_internal=False,
            partitions=tuple(entries),
            topic_authorized_operations=i32(8),
        )
        for name in names
    ]
    brokers = (made(module.MetadataResponseBroker, node_id=i32(1), host="broker", port=i32(9092), rack="a"),)
    return made(
        module.MetadataResponse,
        brokers=brokers,
        cluster_id="cluster",
        controller_id=i32(1),
        topics=tuple(topics),
        cluster_authorized_operations=i32(-(2**31)),
    )


def edited(answer: Any, view: View, rules: InternalTopicRules = RULES) -> Any:
    key, version = answer.__api_key__, answer.__version__
    edit = edit_answer(rules, key, version, view)
    if edit is None:
        return answer
    frame = edit(encode_response(answer, 77))
    frame = frame if isinstance(frame, bytes) else run_steps(frame)
    assert int.from_bytes(frame[4:8], "big") == 77
    return decode_response(frame, key, version)


def topics_of(answer: Any) -> dict[str | None, tuple[ErrorCode, bool, int]]:
    return {
        topic.name: (topic.error_code, getattr(topic, "is_internal", True), len(topic.partitions))
        for topic in answer.topics
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_list_of_all_topics_has_only_those_of_others(version: int) -> None:
    names = ["orders", *sorted(NAMES.all), "payments"]
    answer = edited(metadata_answer(version, names), View.NONE)
    assert answer == metadata_answer(version, ["orders", "payments"])
    assert edited(metadata_answer(version, sorted(NAMES.all)), View.NONE) == metadata_answer(version, [])
    unedited = metadata_answer(version, ["orders"])
    assert edited(unedited, View.NONE) == unedited


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_shown_is_marked_as_internal(version: int) -> None:
    answer = edited(metadata_answer(version, [NAMES.journal, "orders", NAMES.responses]), View.WHOLE)
    shown = (ErrorCode.none, True, 3)
    others = (ErrorCode.none, version == 0, 3)
    assert topics_of(answer) == {NAMES.journal: shown, "orders": others, NAMES.responses: shown}
    assert edited(answer, View.WHOLE) == answer


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_clients_may_not_read_is_refused_by_its_name(version: int) -> None:
    answer = edited(metadata_answer(version, ["orders", NAMES.requests, NAMES.journal]), View.BY_NAME)
    internal = version == 0
    assert topics_of(answer) == {
        "orders": (ErrorCode.none, internal, 3),
        NAMES.requests: (REFUSED, internal, 0),
        NAMES.journal: (ErrorCode.none, True, 3),
    }
    assert [getattr(topic, "topic_id", None) for topic in answer.topics if topic.name == NAMES.requests] == [None]


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 12])
def test_a_topic_that_clients_may_not_read_is_refused_by_its_id(version: int) -> None:
    answer = edited(metadata_answer(version, ["orders", NAMES.responses]), View.BY_ID)
    refused = answer.topics[1]
    assert (refused.name, refused.topic_id, refused.error_code) == (None, ID[NAMES.responses], REFUSED)
    assert refused.partitions == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_contains_the_name_of_an_internal_topic_is_that_of_another_topic(version: int) -> None:
    # With a prefix of 30 or 83 characters, the compact length of a name is itself a character of a legal name.
    for length in (0, 30, 45, 83, 84, 180):
        names = TopicNames("x" * length)
        own, rules = names.requests, InternalTopicRules(names)
        legal = [chr(code) for code in (45, 46, 95, *range(48, 58), *range(65, 91), *range(97, 123))]
        others = [f"{first}{own}" for first in legal] + [f"a-{first}{own}" for first in legal] + [f"{own}-"]
        answer = edited(metadata_answer(version, [*others, own], partitions=1), View.NONE, rules)
        assert [topic.name for topic in answer.topics] == others


def answer_of(api_key: int, topics: Collection[str]) -> Any:
    """An answer in the newest version that names topics."""
    version = KNOWN_VERSIONS[api_key][1]
    name = api_name(api_key)
    response = load_response_schema(api_key, version)
    module: Any = __import__(response.__module__, fromlist=[""])
    match name:
        case "ListPartitionReassignments":
            entries = [made(module.OngoingTopicReassignment, name=each, partitions=()) for each in topics]
            return made(response, error_message=None, topics=tuple(entries))
        case "DescribeLogDirs":
            entries = [made(module.DescribeLogDirsTopic, name=each, partitions=()) for each in topics]
            sizes = {"total_bytes": i64(1), "usable_bytes": i64(1), "is_cordoned": False}
            return made(
                response, results=(made(module.DescribeLogDirsResult, log_dir="/", topics=tuple(entries), **sizes),)
            )
        case "ListConfigResources":
            entries = [made(module.ConfigResource, resource_name=each, resource_type=i8(TOPIC)) for each in topics]
            entries.append(made(module.ConfigResource, resource_name=NAMES.journal, resource_type=i8(TOPIC + 1)))
            return made(response, config_resources=tuple(entries))
        case "DescribeTransactions":
            entries = [made(module.TopicData, topic=each, partitions=(i32(0),)) for each in topics]
            state = made(
                module.TransactionState,
                transactional_id="id",
                transaction_state="Ongoing",
                transaction_timeout=timedelta(seconds=1),
                transaction_start_time=None,
                producer_id=i64(1),
                producer_epoch=0,
                topics=tuple(entries),
            )
            return made(response, transaction_states=(state,))
        case "ElectLeaders":
            entries = [made(module.ReplicaElectionResult, topic=each, partition_result=()) for each in topics]
            return made(response, replica_election_results=tuple(entries))
        case "DescribeTopicPartitions":
            entries = [
                made(
                    module.DescribeTopicPartitionsResponseTopic,
                    name=each,
                    topic_id=ID[each],
                    is_internal=False,
                    partitions=(),
                    topic_authorized_operations=i32(8),
                )
                for each in topics
            ]
            return made(response, topics=tuple(entries), next_cursor=None)
    raise AssertionError(name)


@pytest.mark.parametrize("api_key", sorted(LISTING_APIS - {METADATA}), ids=api_name)
def test_every_other_list_has_only_the_topics_of_others(api_key: int) -> None:
    names = ["orders", *sorted(NAMES.all), "payments"]
    assert edited(answer_of(api_key, names), View.NONE) == answer_of(api_key, ["orders", "payments"])


@pytest.mark.parametrize("api_key", sorted(LISTING_APIS - {METADATA, DESCRIBE_TOPIC_PARTITIONS}), ids=api_name)
def test_who_may_use_the_topics_finds_them_in_every_list(api_key: int) -> None:
    answer = answer_of(api_key, ["orders", NAMES.journal])
    assert edited(answer, View.WHOLE) == answer


def test_descriptions_of_partitions_refuse_and_mark_as_metadata_does() -> None:
    answer = answer_of(DESCRIBE_TOPIC_PARTITIONS, ["orders", NAMES.requests, NAMES.journal])
    shown: Mapping[View, Mapping[str, tuple[ErrorCode, bool, int]]] = {
        View.BY_NAME: {
            "orders": (ErrorCode.none, False, 0),
            NAMES.requests: (REFUSED, False, 0),
            NAMES.journal: (ErrorCode.none, True, 0),
        },
        View.WHOLE: {
            "orders": (ErrorCode.none, False, 0),
            NAMES.requests: (ErrorCode.none, True, 0),
            NAMES.journal: (ErrorCode.none, True, 0),
        },
    }
    for view, topics in shown.items():
        assert topics_of(edited(answer, view)) == topics
