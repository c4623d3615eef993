"""Transactions V2 (KIP-890): TxnOffsetCommit adds the group, and each end raises the producer's epoch.

The broker, the coordinator and the gateways are real. One gateway halts at chosen steps until it is killed.
"""

from collections.abc import Iterator

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.wire.api_keys import API_VERSIONS, END_TXN, PRODUCE, TXN_OFFSET_COMMIT
from tests.gateway.support import stopping_gateway
from tests.gateway.support.raw_producer import GROUP, INIT_PRODUCER_ID, LONG_MS, RawProducer, find_coordinator
from tests.gateway.support.wire_client import WireClient
from tests.gateway.transactions.environment import SHORT_MS, UNSTABLE, Environment, completed_offset
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import unique

COMMIT, END = 5, 5
"""The versions of TxnOffsetCommit and EndTxn in transactions V2."""

POINTS = {
    "retried": (stopping_gateway.INTENDED, True),
    "restarted": (stopping_gateway.INTENDED, True),
    "committed": (stopping_gateway.ENDED, True),
    "aborted": (stopping_gateway.ENDED, False),
    "committed-restarted": (stopping_gateway.ENDED, True),
    "committed-retried": (stopping_gateway.ENDED, True),
    "delivered": (stopping_gateway.DELIVERED, True),
}
"""Where the gateway halts in EndTxn, and the outcome that the producer asked for, by the tests' names."""


@pytest.fixture(scope="module")
def interrupted(broker: EmbeddedBroker, coordinator: CoordinatorProcess, topic: str) -> dict[str, RawProducer]:
    """Producers whose EndTxn a killed gateway left unfinished."""
    prefix = coordinator.topics.prefix
    producers = {}
    module = "tests.gateway.support.stopping_gateway"
    with GatewayProcess(broker.bootstrap_servers, prefix, name="halting", module=module) as gateway:
        gateway.start()
        for name, (point, committed) in POINTS.items():
            producer = RawProducer(gateway.port, unique(f"{point}-{name}"), unique("group"), topic, LONG_MS)
            assert producer.init() is ErrorCode.none
            assert producer.commit_offset(5, COMMIT) is ErrorCode.none
            producer.client.send(producer.end_request(committed, END))
            producers[name] = producer
        for producer in producers.values():
            expected = f"stopped {producer.transactional_id}"
            gateway.await_line(expected, lambda line, expected=expected: line == expected)  # type: ignore[misc]
    return producers


@pytest.fixture(scope="module")
def environment(
    broker: EmbeddedBroker, coordinator: CoordinatorProcess, topic: str, interrupted: dict[str, RawProducer]
) -> Iterator[Environment]:
    """The gateways start after the halting one was killed, so that none of them completes its transactions earlier."""
    prefix = coordinator.topics.prefix
    gateways = [GatewayProcess(broker.bootstrap_servers, prefix, name=name) for name in ("a", "b")]
    try:
        for gateway in gateways:
            gateway.start()
        for producer in interrupted.values():
            producer.go_to(gateways[0].port)
        yield Environment(broker, coordinator, gateways[0], gateways[1], topic)
    finally:
        for gateway in gateways:
            gateway.kill()


def offered(port: int) -> tuple[dict[int, int], dict[str, int]]:
    """The highest version of each API, and the finalized level of each feature."""
    with WireClient(port) as client:
        request = load_request_schema(API_VERSIONS, 4)(client_software_name="test", client_software_version="1")  # type: ignore[call-arg]
        answer = client.ask(request)
    features = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return {api.api_key: api.max_version for api in answer.api_keys}, features


# ---- what is offered -----------------------------------------------------------------------------------------------


def test_the_brokers_transaction_version_and_its_requests_are_offered(environment: Environment) -> None:
    of_broker, features = offered(int(environment.broker.bootstrap_servers.rpartition(":")[2]))
    versions, own_features = offered(environment.first.port)
    assert own_features["transaction.version"] == features["transaction.version"] == 2
    for key in (INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, END_TXN):
        assert versions[key] == of_broker[key]
    assert versions[PRODUCE] == 12


def test_without_the_option_no_producer_begins_with_v2_and_those_that_have_begun_go_on(
    environment: Environment,
) -> None:
    producer = environment.producer()
    assert producer.commit_offset(1, COMMIT) is ErrorCode.none
    prefix, settings = environment.coordinator.topics.prefix, {"transactions-v2": "false"}
    with GatewayProcess(environment.broker.bootstrap_servers, prefix, settings, name="v1") as gateway:
        gateway.start()
        versions, features = offered(gateway.port)
        assert "transaction.version" not in features
        assert versions == offered(environment.first.port)[0]
        producer.go_to(gateway.port)
        assert producer.end(True, END) is ErrorCode.none
        assert producer.commit_offset(2, COMMIT) is ErrorCode.none
        producer.go_to(environment.second.port)
        assert producer.end(True, END) is ErrorCode.none
        assert producer.committed_offset() == 2


# ---- one producer --------------------------------------------------------------------------------------------------


def test_offsets_follow_each_transaction_of_a_producer_whose_epoch_is_raised(environment: Environment) -> None:
    producer = environment.producer()
    expected = -1
    for offset, committed in ((1, True), (2, False), (3, True), (4, True), (5, False)):
        epoch = producer.producer_epoch
        assert producer.commit_offset(offset, COMMIT) is ErrorCode.none
        assert producer.commit_offset(offset, COMMIT) is ErrorCode.none
        assert producer.committed_offset() == UNSTABLE
        assert producer.end(committed, END) is ErrorCode.none
        assert producer.producer_epoch == epoch + 1
        expected = offset if committed else expected
        assert producer.committed_offset() == expected


def test_each_request_may_go_through_another_gateway(environment: Environment) -> None:
    producer = environment.producer()
    for offset in (1, 2, 3):
        producer.go_to(environment.second.port)
        assert producer.commit_offset(offset, COMMIT) is ErrorCode.none
        producer.go_to(environment.first.port)
        assert producer.committed_offset() == UNSTABLE
        assert producer.end(True, END) is ErrorCode.none
        assert producer.committed_offset(environment.second.port) == offset


def test_a_commit_that_comes_after_its_transactions_end_is_fenced_as_by_a_broker(environment: Environment) -> None:
    producer = environment.producer()
    assert producer.commit_offset(1, COMMIT) is ErrorCode.none
    ended = producer.producer_epoch
    assert producer.end(True, END) is ErrorCode.none
    current, producer.producer_epoch = producer.producer_epoch, ended
    with WireClient(int(environment.broker.bootstrap_servers.rpartition(":")[2])) as broker:
        find_coordinator(broker, producer.group_id, GROUP)
        of_broker = producer.commit_offset_at(broker, 9, COMMIT)
    assert producer.commit_offset(9, COMMIT) is of_broker is ErrorCode.invalid_producer_epoch
    # Also while the next transaction is open, and through another gateway.
    producer.producer_epoch = current
    assert producer.commit_offset(2, COMMIT) is ErrorCode.none
    producer.producer_epoch = ended
    producer.go_to(environment.second.port)
    assert producer.commit_offset(9, COMMIT) is ErrorCode.invalid_producer_epoch
    assert producer.end(False, END) is ErrorCode.producer_fenced
    producer.producer_epoch = current
    assert producer.end(True, END) is ErrorCode.none
    assert producer.committed_offset() == 2


def test_errors_of_a_producer_that_the_broker_does_not_know_are_the_brokers(environment: Environment) -> None:
    producer = environment.producer()
    unknown = RawProducer(producer.port, unique("unknown"), producer.group_id, environment.topic)
    unknown.producer_id, unknown.producer_epoch = producer.producer_id, i16(0)
    other = RawProducer(producer.port, producer.transactional_id, producer.group_id, environment.topic)
    other.producer_id, other.producer_epoch = type(producer.producer_id)(987_654), i16(0)
    with WireClient(int(environment.broker.bootstrap_servers.rpartition(":")[2])) as broker:
        for one in (unknown, other):
            find_coordinator(broker, one.group_id, GROUP)
            of_broker = one.commit_offset_at(broker, 1, COMMIT)
            assert one.commit_offset(1, COMMIT) is of_broker is ErrorCode.invalid_producer_id_mapping


def test_an_end_without_a_transaction_is_answered_as_by_a_broker(environment: Environment) -> None:
    producer = environment.producer()
    assert producer.end(True, END) is ErrorCode.invalid_txn_state
    epoch = producer.producer_epoch
    assert producer.end(False, END) is ErrorCode.none
    assert producer.producer_epoch == epoch + 1
    assert producer.commit_offset(1, COMMIT) is ErrorCode.none
    assert producer.end(True, END) is ErrorCode.none
    assert producer.committed_offset() == 1


def test_a_transaction_can_have_several_groups(environment: Environment) -> None:
    one = environment.producer()
    other = RawProducer(one.port, one.transactional_id, unique("group"), environment.topic)
    other.producer_id, other.producer_epoch = one.producer_id, one.producer_epoch
    assert one.commit_offset(1, COMMIT) is ErrorCode.none
    assert other.commit_offset(2, COMMIT) is ErrorCode.none
    assert (one.committed_offset(), other.committed_offset()) == (UNSTABLE, UNSTABLE)
    assert one.end(True, END) is ErrorCode.none
    assert (one.committed_offset(), other.committed_offset()) == (1, 2)


def test_a_transaction_is_aborted_at_its_timeout(environment: Environment) -> None:
    producer = environment.producer(timeout_ms=SHORT_MS)
    assert producer.commit_offset(1, COMMIT) is ErrorCode.none
    assert producer.committed_offset() == UNSTABLE
    assert completed_offset(producer) == -1
    assert producer.end(True, END) in (ErrorCode.producer_fenced, ErrorCode.invalid_txn_state)


def test_init_producer_id_in_the_middle_of_a_transaction_aborts_it(environment: Environment) -> None:
    producer = environment.producer()
    assert producer.commit_offset(1, COMMIT) is ErrorCode.none
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1
    assert producer.commit_offset(2, COMMIT) is ErrorCode.none
    assert producer.end(True, END) is ErrorCode.none
    assert producer.committed_offset() == 2


# ---- a gateway is killed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["retried", "committed-retried", "delivered"])
def test_a_producer_repeats_the_end_through_another_gateway_and_goes_on(
    environment: Environment, interrupted: dict[str, RawProducer], name: str
) -> None:
    producer = interrupted[name]
    epoch = producer.producer_epoch
    assert producer.end(True, END) is ErrorCode.none
    assert producer.producer_epoch == epoch + 1
    assert producer.committed_offset() == 5
    assert producer.commit_offset(7, COMMIT) is ErrorCode.none
    assert producer.end(True, END) is ErrorCode.none
    assert producer.committed_offset() == 7


def test_a_transaction_that_had_not_ended_is_aborted_by_a_new_producer(
    environment: Environment, interrupted: dict[str, RawProducer]
) -> None:
    producer = interrupted["restarted"]
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1


def test_a_transaction_that_the_broker_ended_is_completed_without_its_producer(
    environment: Environment, interrupted: dict[str, RawProducer]
) -> None:
    assert completed_offset(interrupted["committed"]) == 5
    assert completed_offset(interrupted["aborted"]) == -1


def test_a_transaction_that_the_broker_committed_survives_a_new_producer(
    environment: Environment, interrupted: dict[str, RawProducer]
) -> None:
    producer = interrupted["committed-restarted"]
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == 5
