"""Topics that grow, come and go while a group consumes them."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from streaming.client import Consumer, MemberEvent, MemberEventKind, TopicPartition
from tests.streaming.client_support import (
    LIMIT_SECONDS,
    Loop,
    RunningCoordinator,
    create_topic,
    places,
    produce,
    unique,
    wait_until,
)
from tests.streaming.consumer.support import PARTITIONS, App, NewConsumer, poll_until, poll_until_assigned, share

OFTEN_MS = 200


def delete_topic(coordinator: RunningCoordinator, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)


def grow_topic(coordinator: RunningCoordinator, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(LIMIT_SECONDS)


def reasons(events: list[MemberEvent]) -> list[str]:
    """What the member said when it asked to join."""
    return [event.detail for event in events if event.kind is MemberEventKind.JOINING]


def test_the_leader_shares_out_new_partitions(
    coordinator: RunningCoordinator, new: NewConsumer, run: Callable[..., App], topic: str
) -> None:
    events: list[MemberEvent] = []
    # The second watches as soon as it leads, should the first be expelled on a slow machine.
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
    assert sorted(places(leader.records + follower.records)) == [(6, 0), (7, 0)]


def test_a_topic_is_consumed_once_it_exists_and_no_longer_when_it_is_deleted(
    coordinator: RunningCoordinator, new: NewConsumer, topic: str
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
    assert sorted(places(poll_until(consumer, 2))) == [(0, 0), (1, 0)]
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


def test_members_follow_the_topics_that_match_their_pattern(coordinator: RunningCoordinator, new: NewConsumer) -> None:
    prefix = unique("bills")
    one, two, other = f"{prefix}-one", f"{prefix}-two", f"my-{prefix}-one"
    for topic in (one, other):
        create_topic(coordinator.bootstrap_servers, topic, 2)
    first, second = (new(metadata_max_age_ms=OFTEN_MS) for _ in range(2))
    first.subscribe(pattern=f"{prefix}-.*")
    second.subscribe(re.compile(f"{prefix}-.*"))
    loops = [Loop(lambda consumer=consumer: consumer.poll(0.2)) for consumer in (first, second)]  # type: ignore[misc]
    try:
        wait_until(lambda: owned(first, second) == partitions(one), "they share what matches")
        create_topic(coordinator.bootstrap_servers, two, 2)
        wait_until(lambda: owned(first, second) == partitions(one, two), "they share the new topic, too")
        delete_topic(coordinator, one)
        wait_until(lambda: owned(first, second) == partitions(two), "they keep what is left")
        wait_until(lambda: first.subscription == second.subscription == {two}, "both know what is left")
    finally:
        for loop in loops:
            loop.end()
    assert [loop.failure for loop in loops] == [None, None]
    with pytest.raises(RuntimeError, match="exclude each other"):
        first.subscribe([two])
    first.unsubscribe()
    assert (first.assignment, first.subscription) == ([], frozenset())
    first.subscribe([two])
