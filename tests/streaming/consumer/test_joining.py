"""What a consumer says when it joins and does when it leads, told by a coordinator that the test plays."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from coordinator_logic.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from coordinator_logic.consumer_protocol.assignors import GroupSubscription, RangeAssignor, TopicMetadata
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from streaming.broker import EmbeddedBroker
from streaming.client import Consumer, consumer_coordinator, topic_watch
from tests.streaming.client_support import LIMIT_SECONDS, Loop, PlayedCoordinator, create_topic, unique, wait_until

MEMBER = "m-1"


class NotingRange(RangeAssignor):
    """Range, which notes what it is told of the topics."""

    def __init__(self) -> None:
        self.topics: Mapping[str, TopicMetadata] = {}

    def assign(
        self, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
    ) -> dict[str, list[TopicPartition]]:
        self.topics = topics
        return super().assign(topics, members)


@pytest.fixture(scope="module")
def broker_in_a_rack() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(properties={"broker.rack": "a"}) as broker:
        yield broker


@pytest.fixture
def played(broker_in_a_rack: EmbeddedBroker) -> Iterator[PlayedCoordinator]:
    coordinator = PlayedCoordinator(broker_in_a_rack.bootstrap_servers)
    yield coordinator
    coordinator.close()


@pytest.fixture
def topic(played: PlayedCoordinator) -> str:
    name = unique("orders")
    create_topic(played.bootstrap_servers, name, 2)
    return name


@pytest.fixture
def new(played: PlayedCoordinator) -> Iterator[Callable[..., Consumer]]:
    """Makes static consumers, which need not be let go."""
    with ExitStack() as made:

        def new(**settings: Any) -> Consumer:
            consumer = Consumer(
                played.bootstrap_servers,
                "group",
                topic_prefix=played.topics.prefix,
                group_instance_id="i-1",
                enable_auto_commit=False,
                **settings,
            )
            return made.enter_context(consumer)

        yield new


@contextmanager
def polling(consumer: Consumer) -> Iterator[None]:
    loop = Loop(lambda: consumer.poll(0.2))
    try:
        yield
    finally:
        loop.end()
    assert loop.failure is None


def joins(played: PlayedCoordinator, *, leader: str = MEMBER, skip_assignment: bool = False) -> JoinGroupRequest:
    """Let the only member join, as the leader unless it is another; returns its request."""
    envelope = played.request("JoinGroup", skip=("Heartbeat", "OffsetFetch"))
    request = msgspec.json.decode(envelope.body, type=JoinGroupRequest)
    response = JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer",
        protocol_name=request.protocols[0].name,
        leader=leader,
        member_id=MEMBER,
        members=[JoinedMember(MEMBER, request.group_instance_id, request.protocols[0].metadata)],
        skip_assignment=skip_assignment,
    )
    played.answer(envelope, response)
    return request


def syncs(played: PlayedCoordinator, *partitions: TopicPartition) -> None:
    """Give the member these partitions."""
    assignment = encode_assignment(Assignment(list(partitions)))
    played.answer(played.request("SyncGroup"), SyncGroupResponse(0, "consumer", "range", assignment))


def subscription(request: JoinGroupRequest) -> Subscription:
    return decode_subscription(request.protocols[0].metadata)


@pytest.mark.parametrize(("rack", "told"), [("a", (frozenset("a"),) * 2), (None, ())])
def test_racks_are_told_to_the_assignor_if_a_member_has_one(
    played: PlayedCoordinator,
    new: Callable[..., Consumer],
    topic: str,
    rack: str | None,
    told: tuple[frozenset[str], ...],
) -> None:
    assignor = NotingRange()
    consumer = new(partition_assignment_strategy=[assignor], client_rack=rack)
    consumer.subscribe([topic])
    with polling(consumer):
        request = joins(played)
        played.request("SyncGroup")
    assert subscription(request).rack_id == rack
    assert assignor.topics == {topic: TopicMetadata(2, told)}


def test_a_static_leader_that_was_away_watches_the_topics_again(
    played: PlayedCoordinator, new: Callable[..., Consumer], topic: str
) -> None:
    consumer = new(metadata_max_age_ms=200)
    consumer.subscribe([topic])
    with polling(consumer):
        joins(played, skip_assignment=True)
        syncs(played, TopicPartition(topic, 0), TopicPartition(topic, 1))
        admin = AdminClient({"bootstrap.servers": played.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(LIMIT_SECONDS)
        request = joins(played)
    assert request.reason == f"the number of partitions of topic {topic} changed from 2 to 3"


def test_a_member_that_has_to_join_again_looks_first_what_matches_its_pattern(
    played: PlayedCoordinator, new: Callable[..., Consumer], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_watch, "SHORTEST_AGE_SECONDS", 0.0)
    monkeypatch.setattr(consumer_coordinator, "_FRESHNESS_PATIENCE_SECONDS", LIMIT_SECONDS)
    consumer = new(heartbeat_interval_ms=100)
    consumer.subscribe(pattern=f"{topic}.*")
    with polling(consumer):
        assert subscription(joins(played, leader="another")).topics == [topic]
        syncs(played)
        create_topic(played.bootstrap_servers, f"{topic}-more", 1)
        played.beats(Error.REBALANCE_IN_PROGRESS)
        assert subscription(joins(played, leader="another")).topics == [topic, f"{topic}-more"]


def test_a_leader_looks_at_once_when_a_partition_that_it_begins_with_is_gone(
    played: PlayedCoordinator, new: Callable[..., Consumer], topic: str
) -> None:
    consumer = new()
    consumer.subscribe([topic])
    with polling(consumer):
        joins(played)
        sync = played.request("SyncGroup")
        admin = AdminClient({"bootstrap.servers": played.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        # The controller is done a moment before the broker tells of it.
        wait_until(lambda: admin.list_topics(topic).topics[topic].error, "the broker has forgotten the topic")
        kept = encode_assignment(Assignment([TopicPartition(topic, 0)]))
        played.answer(sync, SyncGroupResponse(0, "consumer", "range", kept))
        fetched = FetchedGroup("group", [FetchedTopic(topic, [FetchedPartition(0)])])
        played.answer(played.request("OffsetFetch"), OffsetFetchResponse(groups=[fetched]))
        request = joins(played)
    assert request.reason == f"topic {topic} was deleted"
