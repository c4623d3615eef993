"""Clients of the gateway neither write nor read what the coordinator and the gateways tell each other."""

import os
import uuid
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.wire.api_keys import FETCH, PRODUCE
from streaming.gateway.wire.codec import encode_request
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.raw_producer import TRANSACTION, find_coordinator, retried
from tests.gateway.support.requests import SECOND, fetch, metadata, produce
from tests.gateway.support.wire_client import WireClient
from tests.support.kafka_io import consume_all, produce_all, reading
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

REFUSED = ErrorCode.topic_authorization_failed
ALLOWED = ErrorCode.none


@pytest.fixture
def names(broker: EmbeddedBroker) -> TopicNames:
    """A coordinator's topics, with one record in each."""
    names = TopicNames(f"{unique('internal')}-")
    for name in (names.requests, names.responses, names.transactions, names.journal):
        create_topic(broker.bootstrap_servers, name, 1)
        produce_all(broker.bootstrap_servers, name, [name.encode()])
    return names


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    with reading(broker.bootstrap_servers, topic) as reader:
        return [record.raw for record in reader.to_the_end()]


def batch(broker: EmbeddedBroker, topic: str, value: bytes) -> bytes:
    """A record batch as a producer encodes it."""
    produce_all(broker.bootstrap_servers, topic, [value])
    with WireClient(int(broker.bootstrap_servers.rpartition(":")[2])) as client:
        fetched = client.ask(fetch(topic, 2 * len(value) + 1000)).responses[0].partitions[0]
    return bytes(fetched.records)


def produce_to(version: int, batches: dict[str, bytes], acks: int = 1) -> Any:
    module: Any = load_payload_module(PRODUCE, version, EntityType.request)
    return module.ProduceRequest(
        transactional_id=None,
        acks=i16(acks),
        timeout=SECOND,
        topic_data=tuple(
            module.TopicProduceData(
                name=name, partition_data=(module.PartitionProduceData(index=i32(0), records=records),)
            )
            for name, records in batches.items()
        ),
    )


def errors(response: Any, entries: str = "partition_responses") -> dict[str, ErrorCode]:
    return {topic.name: getattr(topic, entries)[0].error_code for topic in response.responses}


@pytest.mark.parametrize("version", [3, 7, 9])
def test_a_record_for_an_internal_topic_is_refused_and_the_others_are_appended(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str, version: int
) -> None:
    records = batch(broker, topic, b"value")
    forged = dict.fromkeys([names.requests, topic, names.transactions, names.responses], records)
    with WireClient(guarding.port) as client:
        assert errors(client.ask(produce_to(version, forged))) == {
            topic: ALLOWED,
            names.requests: REFUSED,
            names.transactions: REFUSED,
            names.responses: REFUSED,
        }
        assert errors(client.ask(produce_to(version, {names.journal: records}))) == {names.journal: REFUSED}
    assert values(broker, topic) == [b"value", b"value"]
    for name in (names.requests, names.transactions, names.responses, names.journal):
        assert values(broker, name) == [name.encode()]


def test_a_producer_that_waits_for_no_response_is_disconnected(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    with WireClient(guarding.port) as client:
        client.send(produce(7, acks=0, topic=names.requests, records=batch(broker, topic, b"forged")))
        assert client.is_closed_by_peer()
    assert values(broker, names.requests) == [names.requests.encode()]
    assert guarding.metric("refused_frames_total", reason="internal-topic") == 1


def test_an_internal_topic_behind_megabytes_of_other_records_is_not_written(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    large = batch(broker, topic, os.urandom(700_000))
    others = {unique("other"): large for _ in range(12)}
    with WireClient(guarding.port) as client:
        client.send(produce_to(9, {**others, names.requests: batch(broker, topic, b"forged")}))
        assert client.is_closed_by_peer()
    assert values(broker, names.requests) == [names.requests.encode()]


def test_a_refused_request_that_arrives_in_pieces_is_not_taken_for_the_next_one(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    records = batch(broker, topic, b"value")
    frames = [
        encode_request(produce_to(7, batches), 7, "client")
        for batches in ({names.requests: records}, {topic: records}, {names.requests: records, topic: records})
    ]
    with WireClient(guarding.port) as client:
        for frame in frames:
            for at in range(0, len(frame), 40):
                client.send_bytes(frame[at : at + 40])
        answers = [errors(client.receive(produce_to(7, {}))[1]) for _ in frames]
    assert answers == [{names.requests: REFUSED}, {topic: ALLOWED}, {names.requests: REFUSED, topic: ALLOWED}]
    assert values(broker, topic) == [b"value"] * 3
    assert values(broker, names.requests) == [names.requests.encode()]


def fetch_by_id(*topic_ids: uuid.UUID, session: tuple[int, int] = (0, -1)) -> Any:
    module: Any = load_payload_module(FETCH, 15, EntityType.request)
    partition = module.FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
    return module.FetchRequest(
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        session_id=i32(session[0]),
        session_epoch=i32(session[1]),
        topics=tuple(module.FetchTopic(topic_id=topic_id, partitions=(partition,)) for topic_id in topic_ids),
        forgotten_topics_data=(),
    )


def ids(broker: EmbeddedBroker, *topics: str) -> list[uuid.UUID]:
    """The ids of topics, which the gateway does not tell of all."""
    with WireClient(int(broker.bootstrap_servers.rpartition(":")[2])) as client:
        found = {topic.name: topic.topic_id for topic in client.ask(metadata(*topics)).topics}
    return [found[name] for name in topics]


def test_answers_to_others_are_not_read_by_name_or_by_id(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    produce_all(broker.bootstrap_servers, topic, [b"value"])
    with WireClient(guarding.port) as client:
        for name in (names.requests, names.responses, names.transactions):
            (refused,) = client.ask(fetch(name, 1 << 20)).responses
            assert (refused.topic, refused.partitions[0].error_code) == (name, REFUSED)
            assert not refused.partitions[0].records
        ours, theirs = ids(broker, topic, names.responses)
        answers = {each.topic_id: each.partitions[0] for each in client.ask(fetch_by_id(theirs, ours)).responses}
        assert answers[theirs].error_code is REFUSED
        assert not answers[theirs].records
        assert b"value" in answers[ours].records


def test_an_internal_topic_among_many_others_is_refused_alone(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    produce_all(broker.bootstrap_servers, topic, [b"value"])
    with WireClient(guarding.port) as client:
        ours, theirs = ids(broker, topic, names.responses)
        others = [uuid.uuid4() for _ in range(5_000)]
        answers = {
            each.topic_id: each.partitions[0] for each in client.ask(fetch_by_id(*others, theirs, ours)).responses
        }
        # The connection goes on in order.
        assert [found.topic_id for found in client.ask(metadata(topic)).topics] == [ours]
    assert len(answers) == 5_002
    assert answers[theirs].error_code is REFUSED
    assert answers[others[-1]].error_code is ErrorCode.unknown_topic_id
    assert b"value" in answers[ours].records


def test_a_topic_that_is_created_later_is_not_read_by_its_id_either(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    with WireClient(guarding.port) as client:
        assert client.ask(fetch_by_id(*ids(broker, topic))).responses[0].partitions[0].error_code is ALLOWED
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([names.responses])[names.responses].result(LIMIT_SECONDS)
        create_topic(broker.bootstrap_servers, names.responses, 1)
        (answer,) = client.ask(fetch_by_id(*ids(broker, names.responses))).responses
    assert answer.partitions[0].error_code is REFUSED


def test_a_fetch_session_is_not_extended_to_an_internal_topic(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    with WireClient(guarding.port) as client:
        ours, theirs = ids(broker, topic, names.responses)
        session_id = client.ask(fetch_by_id(ours, session=(0, 0))).session_id
        answer = client.ask(fetch_by_id(theirs, session=(session_id, 1)))
    assert (answer.error_code, answer.responses) == (ErrorCode.fetch_session_id_not_found, ())


def test_operators_read_the_journal_through_the_gateway(guarding: RunningGateway, names: TopicNames) -> None:
    assert consume_all(guarding.bootstrap_servers, names.journal, 1) == [names.journal.encode()]


ADMIN_REQUESTS: dict[str, Callable[[AdminClient, str], Iterable[Any]]] = {
    "create": lambda admin, name: admin.create_topics([NewTopic(name, 1, 1)]).values(),
    "delete": lambda admin, name: admin.delete_topics([name]).values(),
    "create partitions": lambda admin, name: admin.create_partitions([NewPartitions(name, 3)]).values(),
    "delete records": lambda admin, name: admin.delete_records([TopicPartition(name, 0, 1)]).values(),
    "alter configuration": lambda admin, name: admin.alter_configs([retention(name)]).values(),
    "alter one setting": lambda admin, name: admin.incremental_alter_configs([retention(name)]).values(),
}


def retention(name: str) -> ConfigResource:
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])


@pytest.mark.parametrize("what", ADMIN_REQUESTS)
def test_an_internal_topic_is_not_changed_through_the_gateway(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str, what: str
) -> None:
    through = AdminClient({"bootstrap.servers": guarding.bootstrap_servers})
    direct = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for name in (names.requests, names.rejects if what == "create" else names.journal):
        with pytest.raises(KafkaException) as refused:
            [future.result(LIMIT_SECONDS) for future in ADMIN_REQUESTS[what](through, name)]
        # Before it deletes records, librdkafka asks for the leaders of the partitions, and is refused already then.
        is_asked_first = what == "delete records" and name == names.requests
        expected = KafkaError._NOENT if is_asked_first else KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert refused.value.args[0].code() == expected
    # The same for a topic of the clients' own is left to the broker.
    for future in ADMIN_REQUESTS[what](through, unique("new") if what == "create" else topic):
        if what != "delete records":
            future.result(LIMIT_SECONDS)
    topics = direct.list_topics(timeout=LIMIT_SECONDS).topics
    assert len(topics[names.requests].partitions) == 1
    assert names.rejects not in topics
    assert values(broker, names.requests) == [names.requests.encode()]


def test_a_named_principal_uses_the_topics(permitting: RunningGateway, names: TopicNames) -> None:
    produce_all(permitting.bootstrap_servers, names.requests, [b"direct"])
    assert consume_all(permitting.bootstrap_servers, names.requests, 2) == [names.requests.encode(), b"direct"]


def test_an_internal_topic_is_not_deleted_by_its_id(
    guarding: RunningGateway, broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    module: Any = load_payload_module(20, 6, EntityType.request)
    with WireClient(guarding.port) as client:
        topics = tuple(module.DeleteTopicState(name=None, topic_id=each) for each in ids(broker, names.journal, topic))
        response = client.ask(module.DeleteTopicsRequest(topics=topics, timeout=SECOND))
        assert {each.topic_id: each.error_code for each in response.responses} == {
            topics[0].topic_id: REFUSED,
            topics[1].topic_id: ALLOWED,
        }
    assert values(broker, names.journal) == [names.journal.encode()]


def test_no_transaction_keeps_an_internal_topic_from_being_compacted(
    guarding: RunningGateway, names: TopicNames, topic: str
) -> None:
    """A topic that takes part in an open transaction is not compacted beyond its beginning."""
    transactional_id = unique("open")
    init: Any = load_payload_module(22, 2, EntityType.request)
    add: Any = load_payload_module(24, 3, EntityType.request)
    with WireClient(guarding.port) as client:
        find_coordinator(client, transactional_id, TRANSACTION)
        initialize = init.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout=SECOND)
        producer = retried(lambda: client.ask(initialize), lambda answer: answer.error_code)
        assert producer.error_code is ALLOWED
        request = add.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=tuple(
                add.AddPartitionsToTxnTopic(name=name, partitions=(i32(0),)) for name in (names.transactions, topic)
            ),
        )
        results = client.ask(request).results_by_topic_v3_and_below
    assert {each.name: each.results_by_partition[0].partition_error_code for each in results} == {
        names.transactions: REFUSED,
        topic: ErrorCode.operation_not_attempted,
    }
