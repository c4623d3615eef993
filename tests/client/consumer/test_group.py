"""Consumer groups: every record is consumed once, rebalances, fencing."""

from collections.abc import Callable

import pytest

from streaming.client import (
    ConsumerRecord,
    CoordinatorClient,
    CoordinatorError,
    FencedInstanceId,
    TopicPartition,
)
from tests.client.consumer.support import (
    COOPERATIVE,
    PARTITIONS,
    App,
    NewConsumer,
    RecordingListener,
    poll_until,
    poll_until_assigned,
    positions_of,
    remove_member,
    share,
)
from tests.support.background_loop import BackgroundLoop
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique
from tests.support.waiting import wait_until


@pytest.mark.parametrize("strategy", [("range", "cooperative-sticky"), ("roundrobin",), COOPERATIVE, ("sticky",)])
def test_a_group_consumes_every_record_once_while_members_come_and_go(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], strategy: tuple[str, ...]
) -> None:
    settings = {
        "partition_assignment_strategy": strategy,
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 60_000,
    }
    fill(50)
    first = run(new(**settings))
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(**settings))
    wait_until(lambda: share(first, second), "two share the partitions")
    fill(50)
    third = run(new(**settings))
    wait_until(lambda: share(first, second, third), "three share the partitions")
    fill(50)
    first.close()
    wait_until(lambda: share(second, third), "the two others share the partitions")
    fill(50)
    second.close()
    wait_until(lambda: share(third), "the last has all partitions")
    apps = [first, second, third]
    expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(200)}
    wait_until(lambda: {p for app in apps for p in positions_of(app.records)} == expected, "every record is consumed")
    third.close()
    assert len([p for app in apps for p in positions_of(app.records)]) == len(expected), "no record came twice"
    assert all(app.loop.failure is None for app in apps)


def test_records_arrive_complete_and_in_order(coordinator: CoordinatorProcess, new: NewConsumer, topic: str) -> None:
    produce(coordinator.bootstrap_servers, topic, {2: [b"one", b"two"]})
    consumer = new()
    consumer.subscribe([topic])
    one, two = poll_until(consumer, 2)
    assert (one.topic, one.partition, one.offset, one.value) == (topic, 2, 0, b"one")
    assert one.key == b"key of b'one'"
    assert one.timestamp > 0
    assert (two.offset, two.value) == (1, b"two")


def test_a_poll_returns_at_most_max_poll_records(new: NewConsumer, topic: str, fill: Callable[..., None]) -> None:
    fill(30)
    consumer = new(max_poll_records=7)
    consumer.subscribe([topic])
    seen: list[ConsumerRecord] = []
    while len(seen) < 30 * PARTITIONS:
        records = poll_until(consumer, 1)
        assert len(records) <= 7
        seen += records
    assert len(set(positions_of(seen))) == 30 * PARTITIONS


# ------------------------------------------------------------------------------------------------------------------
# Rebalancing


def test_an_eager_consumer_revokes_everything_before_it_rejoins(new: NewConsumer, run: Callable[..., App]) -> None:
    listener, other_listener = RecordingListener(), RecordingListener()
    first = run(new(), listener)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(), other_listener)
    wait_until(lambda: share(first, second), "both have their share")
    first.loop.end()
    assert listener.calls[:2] == [("assigned", [0, 1, 2, 3, 4, 5]), ("revoked", [0, 1, 2, 3, 4, 5])]
    assert listener.calls[2][0] == "assigned"
    assert {call for call, _ in listener.calls} == {"assigned", "revoked"}


def test_a_cooperative_consumer_revokes_only_what_moves_to_others(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None]
) -> None:
    first_listener, second_listener = RecordingListener(), RecordingListener()
    first = run(new(partition_assignment_strategy=COOPERATIVE), first_listener)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(partition_assignment_strategy=COOPERATIVE), second_listener)
    wait_until(lambda: share(first, second), "both have their share")
    wait_until(lambda: len(first_listener.calls) >= 4, "the second rebalance ends at the first, too")
    wait_until(lambda: len(second_listener.calls) >= 2, "the second has its assignment")
    kept, moved = first.owned, second.owned
    assert first_listener.calls == [
        ("assigned", [0, 1, 2, 3, 4, 5]),
        ("revoked", moved),
        ("assigned", []),
        ("assigned", []),
    ]
    assert second_listener.calls == [("assigned", []), ("assigned", moved)]
    fill(10, kept)
    wait_until(lambda: len(first.records) == 10 * len(kept), "the first consumes the partitions that it kept")


def test_a_listener_may_commit_during_revocation(
    new: NewConsumer, run: Callable[..., App], fill: Callable[..., None], topic: str
) -> None:
    fill(5)
    consumer = new()
    app = run(consumer, RecordingListener(on_revoked=lambda: consumer.commit()))
    wait_until(lambda: len(app.records) == 5 * PARTITIONS, "all records are consumed")
    app.close()
    committed = new().committed([TopicPartition(topic, p) for p in range(PARTITIONS)])
    assert {offset.offset for offset in committed.values() if offset is not None} == {5}


def test_a_removed_consumer_loses_its_partitions_and_rejoins(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], group_id: str
) -> None:
    listener = RecordingListener()
    app = run(new(), listener)
    wait_until(lambda: share(app), "it has all partitions")
    remove_member(coordinator, group_id, app.consumer.generation.member_id)
    wait_until(lambda: len(listener.calls) >= 3, "it has lost its partitions and rejoined")
    everything = list(range(PARTITIONS))
    assert listener.calls[:3] == [("assigned", everything), ("lost", everything), ("assigned", everything)]


def test_a_consumer_leaves_at_its_poll_timeout_and_rejoins_with_the_next_poll(
    new: NewConsumer, run: Callable[..., App], topic: str
) -> None:
    listener = RecordingListener()
    stuck = new(max_poll_interval_ms=7_000)
    stuck.subscribe([topic], listener)
    poll_until_assigned(stuck)
    other = run(new())
    # The rebalance waits for the stuck consumer until its poll timeout expires.
    wait_until(lambda: share(other), "the other has all partitions")
    assert len(listener.calls) == 1
    back = BackgroundLoop(lambda: stuck.poll(0.2))
    try:
        wait_until(lambda: len(stuck.assignment) == 3 == len(other.owned), "they share the partitions")
    finally:
        back.end()
    assert [call for call, _ in listener.calls] == ["assigned", "lost", "assigned"]


def test_a_changed_subscription_rebalances_the_group(
    coordinator: CoordinatorProcess, new: NewConsumer, topic: str
) -> None:
    other_topic = unique("invoices")
    create_topic(coordinator.bootstrap_servers, other_topic, 2)
    consumer = new(partition_assignment_strategy=COOPERATIVE)
    listener = RecordingListener()
    consumer.subscribe([topic], listener)
    poll_until_assigned(consumer)
    consumer.subscribe([other_topic], listener)
    poll_until_assigned(consumer, 2)
    assert consumer.assignment == [TopicPartition(other_topic, 0), TopicPartition(other_topic, 1)]
    assert [call for call, _ in listener.calls] == ["assigned", "revoked", "assigned"]


def test_unsubscribing_leaves_the_group(
    coordinator: CoordinatorProcess, new: NewConsumer, topic: str, group_id: str
) -> None:
    consumer = new()
    listener = RecordingListener()
    consumer.subscribe([topic], listener)
    poll_until_assigned(consumer)
    consumer.unsubscribe()
    assert consumer.assignment == []
    assert listener.calls[-1] == ("revoked", list(range(PARTITIONS)))
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as admin:
        assert admin.describe_groups([group_id]).groups[0].group_state == "Empty"
    with pytest.raises(RuntimeError, match="not subscribed"):
        consumer.poll(0)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)


def test_a_static_consumer_returns_to_its_partitions_without_a_rebalance(
    new: NewConsumer, run: Callable[..., App]
) -> None:
    listener = RecordingListener()
    other = run(new(group_instance_id="i-1"), listener)
    static = run(new(group_instance_id="i-2"))
    wait_until(lambda: share(other, static), "they share the partitions")
    wait_until(lambda: listener.calls[-1] == ("assigned", other.owned), "the other consumer has its assignment")
    calls, generation, owned = list(listener.calls), static.consumer.generation, static.owned
    static.close()
    back = run(new(group_instance_id="i-2"))
    wait_until(lambda: back.owned == owned, "it has the same partitions again")
    assert back.consumer.generation.generation_id == generation.generation_id
    assert listener.calls == calls


def test_a_fenced_consumer_raises_and_cannot_commit(new: NewConsumer, run: Callable[..., App]) -> None:
    listener = RecordingListener()
    first = run(new(group_instance_id="i-1"), listener)
    wait_until(lambda: share(first), "the first has all partitions")
    second = run(new(group_instance_id="i-1"))
    wait_until(lambda: share(second), "the second has all partitions")
    wait_until(lambda: first.loop.failure, "the first is fenced")
    assert isinstance(first.loop.failure, FencedInstanceId)
    assert listener.calls[-1] == ("lost", list(range(PARTITIONS)))
    with pytest.raises(CoordinatorError):
        first.consumer.commit({TopicPartition("t", 0): 1})
