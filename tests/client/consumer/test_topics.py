"""Topics that grow, are created and are deleted while a group consumes them."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from streaming.client import Consumer, MemberEvent, MemberEventKind, TopicPartition
from tests.client.consumer.support import (
    PARTITIONS,
    App,
    NewConsumer,
    poll_until,
    poll_until_assigned,
    positions_of,
    share,
)
from tests.support.background_loop import BackgroundLoop
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

OFTEN_MS = 200


def delete_topic(coordinator: CoordinatorProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)


def grow_topic(coordinator: CoordinatorProcess, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(LIMIT_SECONDS)


def reasons(events: list[MemberEvent]) -> list[str]:
    """The reasons in the member's JoinGroup requests."""
    return [event.detail for event in events if event.kind is MemberEventKind.JOINING]


def test_the_leader_assigns_new_partitions(
    coordinator: CoordinatorProcess, new: NewConsumer, run: Callable[..., App], topic: str
) -> None:
    events: list[MemberEvent] = []
    # Both watch often: the second leads if the first is removed on a slow machine.
    settings = {"metadata_max_age_ms": OFTEN_MS, "observer": events.append}
    leader = run(new(**settings))
    wait_until(lambda: share(leader), "the first has all partitions")
    follower = run(new(**settings))
    wait_until(lambda: share(leader, follower), "both have their share")
    grow_topic(coordinator, topic, PARTITIONS + 2)
    wait_until(lambda: len(leader.owned) == len(follower.owned) == 4, "both have a share of the new partitions")
    assert sorted(leader.owned + follower.owned) == list(range(PARTITIONS + 2))
    assert f"the number of partitions of topic {topic} changed from 6 to 8" in reasons(events)
    produce(coordinator.bootstrap_servers, topic, {6: [b"six"], 7: [b"seven"]})
    wait_until(lambda: len(leader.records + follower.records) == 2, "the new partitions are consumed")
    assert sorted(positions_of(leader.records + follower.records)) == [(6, 0), (7, 0)]


def test_a_topic_is_consumed_from_its_creation_to_its_deletion(
    coordinator: CoordinatorProcess, new: NewConsumer, topic: str
) -> None:
    later = unique("later")
    events: list[MemberEvent] = []
    consumer = new(metadata_max_age_ms=OFTEN_MS, observer=events.append)
    consumer.subscribe([topic, later])
    poll_until_assigned(consumer)
    create_topic(coordinator.bootstrap_servers, later, 2)
    poll_until_assigned(consumer, PARTITIONS + 2)
    assert reasons(events)[-1] == f"topic {later} was created"
    produce(coordinator.bootstrap_servers, later, {0: [b"zero"], 1: [b"one"]})
    assert sorted(positions_of(poll_until(consumer, 2))) == [(0, 0), (1, 0)]
    delete_topic(coordinator, later)
    poll_until_assigned(consumer, PARTITIONS)
    assert reasons(events)[-1] == f"topic {later} was deleted"
    assert {partition.topic for partition in consumer.assignment} == {topic}
    assert consumer.subscription == {topic, later}


def owned(*consumers: Consumer) -> set[TopicPartition]:
    return {partition for consumer in consumers for partition in consumer.assignment}


def partitions(*topics: str) -> set[TopicPartition]:
    """The partitions of topics that have two."""
    return {TopicPartition(topic, number) for topic in topics for number in range(2)}


def test_members_share_the_topics_that_match_their_pattern(coordinator: CoordinatorProcess, new: NewConsumer) -> None:
    prefix = unique("bills")
    one, two, other = f"{prefix}-one", f"{prefix}-two", f"my-{prefix}-one"
    for topic in (one, other):
        create_topic(coordinator.bootstrap_servers, topic, 2)
    first, second = (new(metadata_max_age_ms=OFTEN_MS) for _ in range(2))
    first.subscribe(pattern=f"{prefix}-.*")
    second.subscribe(re.compile(f"{prefix}-.*"))
    loops = [BackgroundLoop(lambda consumer=consumer: consumer.poll(0.2)) for consumer in (first, second)]  # type: ignore[misc]
    try:
        wait_until(lambda: owned(first, second) == partitions(one), "they share the matching topic")
        create_topic(coordinator.bootstrap_servers, two, 2)
        wait_until(lambda: owned(first, second) == partitions(one, two), "they share the new topic, too")
        delete_topic(coordinator, one)
        wait_until(lambda: owned(first, second) == partitions(two), "they keep the remaining topic")
        wait_until(lambda: first.subscription == second.subscription == {two}, "both know the remaining topic")
    finally:
        for loop in loops:
            loop.end()
    assert [loop.failure for loop in loops] == [None, None]
    with pytest.raises(RuntimeError, match="exclude each other"):
        first.subscribe([two])
    first.unsubscribe()
    assert (first.assignment, first.subscription) == ([], frozenset())
    first.subscribe([two])
