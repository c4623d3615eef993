"""Offsets in transactions, while gateways are killed and producers restart or disappear.

The broker, the coordinator and the gateways are real. One gateway halts at chosen steps until it is killed; the others
are unmodified.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode

from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support import stopping_gateway
from tests.gateway.support.raw_producer import GROUP, LONG_MS, RawProducer, find_coordinator
from tests.gateway.support.wire_client import WireClient
from tests.gateway.transactions.environment import RECORDS, SHORT_MS, UNSTABLE, Environment, completed_offset
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import consume_all
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS


@pytest.fixture(scope="module")
def halting_gateway(broker: EmbeddedBroker, coordinator: CoordinatorProcess) -> Iterator[GatewayProcess]:
    """A gateway that halts in the middle of a request, depending on the transactional id."""
    prefix = coordinator.topics.prefix
    with GatewayProcess(
        broker.bootstrap_servers, prefix, name="halting", module="tests.gateway.support.stopping_gateway"
    ) as gateway:
        gateway.start()
        yield gateway


@dataclass
class Interrupted:
    """A producer whose gateway was killed during a request, and its group's offset just before the kill."""

    producer: RawProducer
    offset_before: int | str


@pytest.fixture(scope="module")
def interrupted(halting_gateway: GatewayProcess, topic: str) -> dict[str, Interrupted]:
    """Producers whose requests a killed gateway left unfinished, each at one point, by the tests' names for them."""
    points = {
        "retried": (stopping_gateway.INTENDED, True),
        "retried-abort": (stopping_gateway.INTENDED, False),
        "restarted": (stopping_gateway.INTENDED, True),
        "abandoned": (stopping_gateway.INTENDED, True),
        "committed": (stopping_gateway.ENDED, True),
        "aborted": (stopping_gateway.ENDED, False),
        "committed-restarted": (stopping_gateway.ENDED, True),
        "delivered": (stopping_gateway.DELIVERED, True),
        "delivered-abort": (stopping_gateway.DELIVERED, False),
    }
    producers: dict[str, RawProducer] = {}
    for name, (point, _) in points.items():
        timeout_ms = SHORT_MS if name == "abandoned" else LONG_MS
        producer = RawProducer(halting_gateway.port, unique(f"{point}-{name}"), unique("group"), topic, timeout_ms)
        assert producer.init() is ErrorCode.none
        producer.begin(5)
        producers[name] = producer
    for name, (_, committed) in points.items():
        producers[name].client.send(producers[name].end_request(committed))
    adding = RawProducer(halting_gateway.port, unique(stopping_gateway.BROKER_HAS_GROUP), unique("group"), topic)
    assert adding.init() is ErrorCode.none
    adding.client.send(adding.add_offsets_request())
    producers["adding"] = adding
    for producer in producers.values():
        expected = f"stopped {producer.transactional_id}"
        halting_gateway.await_line(expected, lambda line, expected=expected: line == expected)  # type: ignore[misc]
    before = {name: producer.committed_offset() for name, producer in producers.items()}
    halting_gateway.kill()
    return {name: Interrupted(producer, before[name]) for name, producer in producers.items()}


@pytest.fixture(scope="module")
def environment(
    broker: EmbeddedBroker, coordinator: CoordinatorProcess, topic: str, interrupted: dict[str, Interrupted]
) -> Iterator[Environment]:
    """The gateways start after the halting one was killed, so that none of them completes its transactions earlier."""
    prefix = coordinator.topics.prefix
    gateways = [GatewayProcess(broker.bootstrap_servers, prefix, name=name) for name in ("first", "second")]
    try:
        for gateway in gateways:
            gateway.start()
        for each in interrupted.values():
            each.producer.go_to(gateways[0].port)
        yield Environment(broker, coordinator, gateways[0], gateways[1], topic)
    finally:
        for gateway in gateways:
            gateway.kill()


# ---- a gateway is killed -----------------------------------------------------------------------------------------


def test_offsets_are_pending_until_the_outcome_is_delivered(interrupted: dict[str, Interrupted]) -> None:
    before = {name: each.offset_before for name, each in interrupted.items()}
    assert before.pop("adding") == -1
    assert (before.pop("delivered"), before.pop("delivered-abort")) == (5, -1)
    assert set(before.values()) == {UNSTABLE}


def test_after_a_kill_before_the_broker_the_producer_ends_the_transaction_through_another_gateway(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    for name, committed, offset in (("retried", True, 5), ("retried-abort", False, -1)):
        producer = interrupted[name].producer
        assert producer.committed_offset() == UNSTABLE
        assert producer.end(committed) is ErrorCode.none
        assert producer.committed_offset() == offset


def test_after_a_kill_before_the_broker_init_producer_id_aborts_the_transaction(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    producer = interrupted["restarted"].producer
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1


def test_after_a_kill_before_the_broker_the_transaction_is_aborted_at_its_timeout(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    assert completed_offset(interrupted["abandoned"].producer) == -1


def test_a_transaction_that_the_broker_ended_is_completed_without_its_producer(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    assert completed_offset(interrupted["committed"].producer) == 5
    assert completed_offset(interrupted["aborted"].producer) == -1


def test_a_transaction_that_the_broker_committed_survives_init_producer_id(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    producer = interrupted["committed-restarted"].producer
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == 5
    producer.begin(6)
    assert producer.end(committed=False) is ErrorCode.none
    assert producer.committed_offset() == 5


def test_after_a_lost_response_the_producer_retries_and_continues(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    producer = interrupted["delivered"].producer
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 5
    producer.begin(7)
    assert producer.committed_offset() == UNSTABLE
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 7


def test_a_group_that_only_the_broker_added_to_the_transaction_is_added_again(
    environment: Environment, interrupted: dict[str, Interrupted]
) -> None:
    producer = interrupted["adding"].producer
    producer.begin(3)
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 3


# ---- gateways that keep running ----------------------------------------------------------------------------------


def test_each_request_of_a_transaction_may_go_through_another_gateway(environment: Environment) -> None:
    producer = environment.producer()
    for offset, committed in ((1, True), (2, False), (3, True)):
        producer.go_to(environment.first.port)
        assert producer.add_offsets() is ErrorCode.none
        producer.go_to(environment.second.port)
        assert producer.commit_offset(offset) is ErrorCode.none
        assert producer.committed_offset(environment.first.port) == UNSTABLE
        producer.go_to(environment.first.port if offset == 2 else environment.second.port)
        assert producer.end(committed) is ErrorCode.none
        assert producer.committed_offset(environment.first.port) == (3 if offset == 3 else 1)


def test_a_transaction_is_aborted_at_its_timeout(environment: Environment) -> None:
    producer = environment.producer(timeout_ms=SHORT_MS)
    producer.begin(1)
    assert producer.committed_offset() == UNSTABLE
    assert producer.committed_offset(require_stable=False) == -1
    assert completed_offset(producer) == -1
    assert producer.end(committed=True) in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch)


def test_init_producer_id_in_the_middle_of_a_transaction_aborts_it(environment: Environment) -> None:
    producer = environment.producer()
    producer.begin(1)
    old_epoch = producer.producer_epoch
    assert producer.init() is ErrorCode.none
    assert producer.committed_offset() == -1
    assert producer.producer_epoch > old_epoch
    producer.begin(2)
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 2


def test_offsets_outside_of_a_transaction_are_refused_as_by_a_broker(environment: Environment) -> None:
    def errors(producer: RawProducer, version: int = 3) -> tuple[ErrorCode, ErrorCode]:
        with WireClient(int(environment.broker.bootstrap_servers.rpartition(":")[2])) as broker:
            find_coordinator(broker, producer.group_id, GROUP)
            return producer.commit_offset(1, version), producer.commit_offset_at(broker, 1, version)

    producer = environment.producer()
    ours, brokers = errors(producer)
    assert ours is brokers is ErrorCode.invalid_txn_state
    ours, brokers = errors(producer, version=4)
    assert ours is brokers is ErrorCode.transaction_abortable
    zombie = RawProducer(producer.port, producer.transactional_id, producer.group_id, environment.topic)
    zombie.producer_id, zombie.producer_epoch = producer.producer_id, producer.producer_epoch
    assert producer.init() is ErrorCode.none
    producer.begin(1)
    ours, brokers = errors(zombie)
    assert ours is brokers is ErrorCode.invalid_producer_epoch
    zombie.producer_id = type(zombie.producer_id)(987_654)
    ours, brokers = errors(zombie)
    assert ours is brokers is ErrorCode.invalid_producer_id_mapping
    assert producer.end(committed=True) is ErrorCode.none
    assert producer.committed_offset() == 1
    # Also between two transactions.
    assert producer.commit_offset(9) is ErrorCode.invalid_txn_state


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_the_requests_is_served(environment: Environment, version: int) -> None:
    producer = environment.producer()
    assert producer.init(version) is ErrorCode.none
    assert producer.add_offsets(version) is ErrorCode.none
    assert producer.commit_offset(version, version) is ErrorCode.none
    assert producer.end(True, version) is ErrorCode.none
    assert producer.committed_offset() == version


def test_a_transaction_can_have_several_groups_and_partitions_of_topics(environment: Environment) -> None:
    one = environment.producer()
    other = RawProducer(one.port, one.transactional_id, unique("group"), environment.topic)
    other.producer_id, other.producer_epoch = one.producer_id, one.producer_epoch
    one.begin(1)
    other.begin(2)
    assert (one.committed_offset(), other.committed_offset()) == (UNSTABLE, UNSTABLE)
    assert one.end(committed=True) is ErrorCode.none
    assert (one.committed_offset(), other.committed_offset()) == (1, 2)


# ---- a client library --------------------------------------------------------------------------------------------


def test_consume_transform_produce_is_exactly_once(environment: Environment) -> None:
    output = unique("output")
    create_topic(environment.broker.bootstrap_servers, output, 1)
    reading = {"bootstrap.servers": environment.first.bootstrap_servers, "isolation.level": "read_committed"}
    consumer = Consumer(
        {**reading, "group.id": unique("loop"), "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    servers = environment.second.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": unique("loop"), "linger.ms": 0})
    try:
        producer.init_transactions(LIMIT_SECONDS)
        consumer.subscribe([environment.topic])
        aborted = set[int]()
        done = 0
        while done < RECORDS:
            (message,) = consumer.consume(1, LIMIT_SECONDS)
            assert (message.error(), message.offset()) == (None, done)
            producer.begin_transaction()
            producer.produce(output, message.value(), partition=0)
            position = TopicPartition(environment.topic, 0, done + 1)
            producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), LIMIT_SECONDS)
            if done % 4 == 2 and done not in aborted:
                aborted.add(done)
                producer.abort_transaction(LIMIT_SECONDS)
                consumer.seek(TopicPartition(environment.topic, 0, done))
            else:
                producer.commit_transaction(LIMIT_SECONDS)
                done += 1
            (committed,) = consumer.committed([TopicPartition(environment.topic, 0)], LIMIT_SECONDS)
            assert committed.offset == (done or OFFSET_INVALID)
    finally:
        consumer.close()
    values = consume_all(environment.first.bootstrap_servers, output, RECORDS, **{"isolation.level": "read_committed"})
    assert values == [b"%d" % number for number in range(RECORDS)]


def test_transactions_without_offsets_need_no_group_coordinator(environment: Environment) -> None:
    output = unique("output")
    create_topic(environment.broker.bootstrap_servers, output, 1)
    with GatewayProcess(environment.broker.bootstrap_servers, unique("nothing") + "-", name="early") as gateway:
        gateway.start()
        producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": unique("early")})
        producer.init_transactions(LIMIT_SECONDS)
        producer.begin_transaction()
        producer.produce(output, b"one", partition=0)
        producer.commit_transaction(LIMIT_SECONDS)
        assert consume_all(gateway.bootstrap_servers, output, 1, **{"isolation.level": "read_committed"}) == [b"one"]
