"""A caller without rights to a transactional id neither changes an outcome nor learns who the producer is."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from kio.schema.errors import ErrorCode

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.transactions.participation import TransactionPhase
from tests.gateway.support.guarded_broker import CreateAcl
from tests.gateway.support.raw_producer import RawProducer
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import reading
from tests.support.topics import create_topic, unique

TOPIC = "committed"


@pytest.fixture
def open_transaction(guarded: EmbeddedBroker) -> Iterator[tuple[RawProducer, str]]:
    """A producer with an open transaction through a gateway, and the topic of the participations."""
    prefix = f"{unique('foreign')}-"
    participations = TopicNames(prefix).transactions
    create_topic(guarded.bootstrap_servers, participations, 1)
    with GatewayProcess(guarded.bootstrap_servers, prefix) as gateway:
        gateway.start()
        producer = RawProducer(gateway.port, unique("owned"), unique("group"), TOPIC)
        assert producer.init() is ErrorCode.none
        assert producer.add_offsets() is ErrorCode.none
        yield producer, participations
        producer.close()


def test_an_unauthorized_end_of_a_transaction_leaves_the_intended_outcome_alone(
    guarded: EmbeddedBroker, create_acl: CreateAcl, open_transaction: tuple[RawProducer, str]
) -> None:
    producer, participations = open_transaction
    create_acl(
        producer.transactional_id, AclOperation.ALL, resource=ResourceType.TRANSACTIONAL_ID, principal="User:owner"
    )

    assert producer.end(committed=False) is ErrorCode.transactional_id_authorization_failed

    with reading(guarded.bootstrap_servers, participations) as reader:
        phases = [record.value["phase"] for record in reader.to_the_end()]
    assert phases == [TransactionPhase.ONGOING]


def test_an_unauthorized_caller_gets_one_error_whatever_producer_id_and_epoch_it_guesses(
    create_acl: CreateAcl, open_transaction: tuple[RawProducer, str]
) -> None:
    producer, _ = open_transaction
    create_acl(
        producer.transactional_id, AclOperation.ALL, resource=ResourceType.TRANSACTIONAL_ID, principal="User:owner"
    )
    true_id, true_epoch = producer.producer_id, producer.producer_epoch
    errors = set()
    for producer_id in (true_id, true_id + 1):
        for epoch in (true_epoch, true_epoch + 1):
            producer.producer_id, producer.producer_epoch = type(true_id)(producer_id), type(true_epoch)(epoch)
            errors |= {producer.commit_offset(1), producer.end(committed=True)}
    assert errors == {ErrorCode.transactional_id_authorization_failed}


def test_a_caller_that_may_not_read_the_group_gets_one_error_whatever_producer_id_it_guesses(
    create_acl: CreateAcl, open_transaction: tuple[RawProducer, str]
) -> None:
    producer, _ = open_transaction
    create_acl(producer.group_id, AclOperation.READ, principal="User:owner")
    errors = set()
    for guess in (producer.producer_id, type(producer.producer_id)(producer.producer_id + 1)):
        producer.producer_id = guess
        errors.add(producer.commit_offset(1))
    assert errors == {ErrorCode.group_authorization_failed}
