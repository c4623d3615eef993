"""Consumers that speak the consumer group protocol (KIP-848), against a real coordinator."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from coordinator_logic import apis
from coordinator_logic.messages import ConsumerGroupDescribeRequest, DescribedConsumerGroup
from streaming.client import Consumer, CoordinatorClient, TopicPartition, UnreleasedInstanceId
from streaming.embedded.broker import EmbeddedBroker
from tests.client.consumer.support import PARTITIONS, App, NewConsumer, RecordingListener, positions_of, share
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.fixture(scope="module")
def coordinator(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A coordinator with frequent heartbeats. The session is short, because a test waits for its end."""
    options = {
        "metrics-port": 0,
        "trigger-interval-ms": 200,
        "group.consumer.session.timeout.ms": 15_000,
        "group.consumer.heartbeat.interval.ms": 500,
    }
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("consumer-protocol"), options) as process:
        process.start()
        yield process


@pytest.fixture
def new(coordinator: CoordinatorProcess, group_id: str) -> Iterator[NewConsumer]:
    """Creates consumers of the test's group, and closes them at the end."""
    created: list[Consumer] = []

    def new(**settings: Any) -> Consumer:
        defaults: dict[str, Any] = {
            "topic_prefix": coordinator.topics.prefix,
            "group_protocol": "consumer",
            "metadata_max_age_ms": 500,
            "max_poll_interval_ms": 60_000,
            "auto_offset_reset": "earliest",
        }
        created.append(Consumer(coordinator.bootstrap_servers, group_id, **{**defaults, **settings}))
        return created[-1]

    yield new
    for consumer in created:
        consumer.close()


def described(coordinator: CoordinatorProcess, group_id: str) -> DescribedConsumerGroup:
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
        request = ConsumerGroupDescribeRequest([group_id])
        (group,) = client.ask(apis.CONSUMER_GROUP_DESCRIBE, group_id, request).result().unwrap().groups
        return group


def test_two_consumers_share_a_topic_that_grows_and_read_every_record_once(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], topic: str,
    group_id: str,
) -> None:  # fmt: skip
    fill(20)
    listener = RecordingListener()
    first = run(new(), listener)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new())
    wait_until(lambda: share(first, second), "both have their share")
    (assigned, everything), (revoked, moved), *_ = listener.calls
    assert (assigned, everything) == ("assigned", list(range(PARTITIONS)))
    assert (revoked, moved) == ("revoked", second.owned), "only what moves is revoked"

    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, PARTITIONS + 2)])[topic].result(LIMIT_SECONDS)
    wait_until(lambda: len(first.owned) == len(second.owned) == 4, "both have a share of the new partitions")
    fill(20, range(PARTITIONS + 2))
    old, grown = range(PARTITIONS), range(PARTITIONS, PARTITIONS + 2)
    expected = {(p, offset) for p in old for offset in range(40)} | {(p, offset) for p in grown for offset in range(20)}
    wait_until(lambda: set(positions_of(first.records + second.records)) == expected, "every record is consumed")
    assert len(first.records) + len(second.records) == len(expected), "no record came twice"
    group = described(coordinator, group_id)
    assert (group.group_state, len(group.members)) == ("Stable", 2)
    second.close()
    wait_until(lambda: len(first.owned) == PARTITIONS + 2, "the first has everything")
    assert first.loop.failure is None
    assert second.loop.failure is None


CONSUMER_PROCESS = """
    import sys
    from streaming.client import Consumer

    bootstrap_servers, prefix, group_id, topic = sys.argv[1:]
    consumer = Consumer(bootstrap_servers, group_id, topic_prefix=prefix, group_protocol="consumer")
    consumer.subscribe([topic])
    while True:
        consumer.poll(0.1)
"""


def test_another_consumer_takes_over_from_a_killed_one(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], group_id: str, topic: str
) -> None:
    survivor = run(new())
    wait_until(lambda: share(survivor), "the survivor has all partitions")
    program = [sys.executable, "-c", textwrap.dedent(CONSUMER_PROCESS)]
    with subprocess.Popen([*program, coordinator.bootstrap_servers, coordinator.topics.prefix, group_id, topic]) as it:
        try:
            wait_until(lambda: len(survivor.owned) == PARTITIONS // 2, "the other process has its half")
        finally:
            it.kill()
    wait_until(lambda: share(survivor), "the survivor has everything again")
    assert survivor.loop.failure is None


def test_a_classic_and_a_consumer_group_member_share_the_partitions(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], group_id: str
) -> None:
    fill(10)
    classic = {"group_protocol": "classic", "heartbeat_interval_ms": 300}
    first = run(new(**classic, partition_assignment_strategy=("cooperative-sticky",)))
    wait_until(lambda: share(first), "the classic member has all partitions")
    second = run(new())
    wait_until(lambda: share(first, second), "both have their share")
    group = described(coordinator, group_id)
    assert sorted(member.member_type for member in group.members) == [0, 1]
    fill(10)
    wait_until(lambda: len(first.records + second.records) == 20 * PARTITIONS, "every record is consumed")
    assert len(set(positions_of(first.records + second.records))) == 20 * PARTITIONS, "no record came twice"
    second.close()
    wait_until(lambda: share(first), "the classic member has all partitions again")


def test_a_static_consumer_returns_to_its_partitions_and_a_second_process_is_refused(
    new: NewConsumer, run: Callable[..., App], topic: str
) -> None:
    listener = RecordingListener()
    other = run(new(), listener)
    static = run(new(group_instance_id="i-1"))
    wait_until(lambda: share(other, static), "they share the partitions")
    impostor = new(group_instance_id="i-1")
    impostor.subscribe([topic])
    with pytest.raises(UnreleasedInstanceId, match="the instance id is owned by"):
        impostor.poll(LIMIT_SECONDS)
    wait_until(lambda: len(listener.calls) >= 3, "the other consumer has ended its rebalance")
    calls, owned = list(listener.calls), static.owned
    static.close()
    back = run(new(group_instance_id="i-1"))
    wait_until(lambda: back.owned == owned, "it has the same partitions again")
    assert listener.calls == calls, "nothing happened to the other consumer"


def test_a_pattern_of_the_coordinator_matches_a_topic_that_is_created_later(
    coordinator: CoordinatorProcess, new: NewConsumer, topic: str, group_id: str
) -> None:
    consumer = new(enable_auto_commit=False)
    consumer.subscribe(pattern=f"{topic}.*")
    wait_until(lambda: consumer.poll(0.1) == [] and len(consumer.assignment) == PARTITIONS, "it has the topic")
    later = unique(topic)
    create_topic(coordinator.bootstrap_servers, later, 1)
    # The coordinator resolves patterns at most every 10 s, as a broker does.
    wait_until(lambda: consumer.poll(0.1) == [] and len(consumer.assignment) == PARTITIONS + 1, "it has the new topic")
    assert consumer.subscription == {topic, later}
    consumer.commit({TopicPartition(later, 0): 0})
    consumer.unsubscribe()
    assert described(coordinator, group_id).group_state == "Empty"


def test_a_killed_coordinator_costs_no_partition(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], fill: Callable[..., None]
) -> None:
    listeners = RecordingListener(), RecordingListener()
    first, second = (run(new(), listener) for listener in listeners)
    wait_until(lambda: share(first, second), "both have their share")
    owned = first.owned, second.owned
    fill(10)
    wait_until(lambda: len(first.records + second.records) == 10 * PARTITIONS, "both know their positions")
    coordinator.kill()
    fill(10)
    wait_until(lambda: len(first.records + second.records) == 20 * PARTITIONS, "they consume without a coordinator")
    coordinator.start()
    third = run(new())
    wait_until(lambda: share(first, second, third), "the group goes on")
    assert set(first.owned) < set(owned[0])
    assert set(second.owned) < set(owned[1])
    assert not any(call == "lost" for listener in listeners for call, _ in listener.calls)
    assert first.loop.failure is second.loop.failure is None
