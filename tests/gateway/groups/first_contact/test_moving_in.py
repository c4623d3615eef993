"""Groups that a real broker's coordinator has, when their clients change to the gateway's address."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import reading
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

OFFSET, METADATA, LEADER_EPOCH = 3, "by the old address", 0


@pytest.fixture(scope="module")
def gateway(broker: EmbeddedBroker, coordinator: CoordinatorProcess) -> Iterator[GatewayProcess]:
    with GatewayProcess(broker.bootstrap_servers, coordinator.topics.prefix) as process:
        process.start()
        yield process


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("moving")
    create_topic(broker.bootstrap_servers, name, 2)
    return name


def consumer(address: str, group_id: str, **settings: object) -> Consumer:
    return Consumer({"bootstrap.servers": address, "group.id": group_id, "enable.auto.commit": False, **settings})


@pytest.fixture
def moving(broker: EmbeddedBroker, topic: str) -> str:
    """A group with an offset at the broker."""
    group_id = unique("moving")
    with closing(consumer(broker.bootstrap_servers, group_id)) as old:
        committed = TopicPartition(topic, 0, OFFSET, METADATA, LEADER_EPOCH)
        old.commit(offsets=[committed], asynchronous=False)
    return group_id


def committed(address: str, group_id: str, topic: str) -> TopicPartition:
    with closing(consumer(address, group_id)) as asking:
        (found,) = asking.committed([TopicPartition(topic, 0)], timeout=LIMIT_SECONDS)
    return found


def fetch(address: str, group_id: str, topic: str) -> None:
    committed(address, group_id, topic)


def commit(address: str, group_id: str, topic: str) -> None:
    with closing(consumer(address, group_id)) as committing:
        committing.commit(offsets=[TopicPartition(topic, 1, 1)], asynchronous=False)


def join(address: str, group_id: str, topic: str, **settings: object) -> None:
    with closing(consumer(address, group_id, **settings)) as joining:
        joining.subscribe([topic])
        wait_until(lambda: joining.poll(0.1) is None and bool(joining.assignment()), "it has joined")


def join_consumer_group(address: str, group_id: str, topic: str) -> None:
    join(address, group_id, topic, **{"group.protocol": "consumer"})


def commit_in_transaction(address: str, group_id: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": group_id})
    producer.init_transactions(LIMIT_SECONDS)
    producer.begin_transaction()
    with closing(consumer(address, group_id)) as committing:
        metadata = committing.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(topic, 1, 1)], metadata, LIMIT_SECONDS)
    producer.commit_transaction(LIMIT_SECONDS)


def list_offsets(address: str, group_id: str, topic: str) -> None:
    asked = [ConsumerGroupTopicPartitions(group_id)]
    admin = AdminClient({"bootstrap.servers": address})
    listed = admin.list_consumer_group_offsets(asked)[group_id].result(LIMIT_SECONDS)
    assert [(each.topic, each.offset) for each in listed.topic_partitions] == [(topic, OFFSET)]


@pytest.mark.parametrize(
    "first_request", [fetch, commit, commit_in_transaction, join, join_consumer_group, list_offsets]
)
def test_whatever_comes_first_the_group_goes_on_where_it_was(
    gateway: GatewayProcess, moving: str, topic: str, first_request: Callable[[str, str, str], None]
) -> None:
    first_request(gateway.bootstrap_servers, moving, topic)
    found = committed(gateway.bootstrap_servers, moving, topic)
    assert (found.offset, found.metadata, found.leader_epoch) == (OFFSET, METADATA, LEADER_EPOCH)


def test_the_journal_names_the_cause(
    broker: EmbeddedBroker, coordinator: CoordinatorProcess, gateway: GatewayProcess, moving: str, topic: str
) -> None:
    fetch(gateway.bootstrap_servers, moving, topic)
    with reading(broker.bootstrap_servers, coordinator.topics.journal) as journal:
        entries = [record.value for record in journal.to_the_end() if record.key == moving.encode()]
    assert [(entry["record"]["type"], entry["cause"]["api"]) for entry in entries] == [
        ("GroupCreated", "TakeOverOffsets"),
        ("OffsetsCommitted", "TakeOverOffsets"),
    ]


def test_a_group_that_is_deleted_comes_back_through_no_gateway(
    broker: EmbeddedBroker, coordinator: CoordinatorProcess, gateway: GatewayProcess, moving: str, topic: str
) -> None:
    # The group is not here yet: the request takes it over, and deletes it.
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers})
    admin.delete_consumer_groups([moving])[moving].result(LIMIT_SECONDS)
    assert committed(gateway.bootstrap_servers, moving, topic).offset < 0
    with GatewayProcess(broker.bootstrap_servers, coordinator.topics.prefix, name="later") as later:
        later.start()
        assert committed(later.bootstrap_servers, moving, topic).offset < 0
        later.await_line("why", lambda line: moving in line and "this coordinator has had the group" in line)
    assert committed(broker.bootstrap_servers, moving, topic).offset == OFFSET, "nothing changes at the brokers"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_at_the_brokers_waits_until_they_are_gone(
    broker: EmbeddedBroker, gateway: GatewayProcess, moving: str, topic: str, protocol: str
) -> None:
    with closing(consumer(broker.bootstrap_servers, moving, **{"group.protocol": protocol})) as old:
        old.subscribe([topic])
        wait_until(lambda: old.poll(0.1) is None and bool(old.assignment()), "it has joined at the broker")
        with closing(consumer(gateway.bootstrap_servers, moving)) as new:
            with pytest.raises(KafkaException):
                new.committed([TopicPartition(topic, 0)], timeout=3.0)
            gateway.await_line("why", lambda line: moving in line and "it has members at the brokers" in line)
    assert committed(gateway.bootstrap_servers, moving, topic).offset == OFFSET
