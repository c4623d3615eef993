"""A consumer's requests when it joins and leads, against a coordinator whose answers the test writes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from coordinator_logic.assignors import GroupSubscription, RangeAssignor, TopicMetadata
from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
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
from streaming.client import Consumer
from streaming.embedded.broker import EmbeddedBroker
from tests.support.background_loop import BackgroundLoop
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

MEMBER = "m-1"


class RecordingRangeAssignor(RangeAssignor):
    """The range assignor, which keeps the topics of its last call."""

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
def scripted(broker_in_a_rack: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    coordinator = ScriptedCoordinator(broker_in_a_rack.bootstrap_servers)
    yield coordinator
    coordinator.close()


@pytest.fixture
def topic(scripted: ScriptedCoordinator) -> str:
    name = unique("orders")
    create_topic(scripted.bootstrap_servers, name, 2)
    return name


@pytest.fixture
def new(scripted: ScriptedCoordinator) -> Iterator[Callable[..., Consumer]]:
    """Creates static consumers, which close without a LeaveGroup that the test would have to answer."""
    with ExitStack() as consumers:

        def new(**settings: Any) -> Consumer:
            consumer = Consumer(
                scripted.bootstrap_servers,
                "group",
                topic_prefix=scripted.topics.prefix,
                group_instance_id="i-1",
                enable_auto_commit=False,
                **settings,
            )
            return consumers.enter_context(consumer)

        yield new


@contextmanager
def polling(consumer: Consumer) -> Iterator[None]:
    loop = BackgroundLoop(lambda: consumer.poll(0.2))
    try:
        yield
    finally:
        loop.end()
    assert loop.failure is None


def accept_join(
    scripted: ScriptedCoordinator, *, leader: str = MEMBER, skip_assignment: bool = False
) -> JoinGroupRequest:
    """Let the only member join, as the leader unless ``leader`` is another; returns its request."""
    envelope = scripted.request("JoinGroup", skip=("Heartbeat", "OffsetFetch"))
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
    scripted.answer(envelope, response)
    return request


def answer_sync(scripted: ScriptedCoordinator, *partitions: TopicPartition) -> None:
    """Assign these partitions to the member."""
    assignment = encode_assignment(Assignment(list(partitions)))
    scripted.answer(scripted.request("SyncGroup"), SyncGroupResponse(0, "consumer", "range", assignment))


def subscription(request: JoinGroupRequest) -> Subscription:
    return decode_subscription(request.protocols[0].metadata)


@pytest.mark.parametrize(("rack", "racks"), [("a", (frozenset("a"),) * 2), (None, ())])
def test_the_assignor_gets_racks_if_a_member_has_one(
    scripted: ScriptedCoordinator,
    new: Callable[..., Consumer],
    topic: str,
    rack: str | None,
    racks: tuple[frozenset[str], ...],
) -> None:
    assignor = RecordingRangeAssignor()
    consumer = new(partition_assignment_strategy=[assignor], client_rack=rack)
    consumer.subscribe([topic])
    with polling(consumer):
        request = accept_join(scripted)
        scripted.request("SyncGroup")
    assert subscription(request).rack_id == rack
    assert assignor.topics == {topic: TopicMetadata(2, racks)}


def test_a_returning_static_leader_watches_the_topics(
    scripted: ScriptedCoordinator, new: Callable[..., Consumer], topic: str
) -> None:
    consumer = new(metadata_max_age_ms=200)
    consumer.subscribe([topic])
    with polling(consumer):
        accept_join(scripted, skip_assignment=True)
        answer_sync(scripted, TopicPartition(topic, 0), TopicPartition(topic, 1))
        admin = AdminClient({"bootstrap.servers": scripted.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(LIMIT_SECONDS)
        request = accept_join(scripted)
    assert request.reason == f"the number of partitions of topic {topic} changed from 2 to 3"


def test_a_rejoining_member_refreshes_the_topics_of_its_pattern_first(
    scripted: ScriptedCoordinator, new: Callable[..., Consumer], topic: str
) -> None:
    limit_ms = round(LIMIT_SECONDS * 1000)
    consumer = new(heartbeat_interval_ms=100, retry_backoff_max_ms=1, pattern_refresh_timeout_ms=limit_ms)
    consumer.subscribe(pattern=f"{topic}.*")
    with polling(consumer):
        assert subscription(accept_join(scripted, leader="another")).topics == [topic]
        answer_sync(scripted)
        create_topic(scripted.bootstrap_servers, f"{topic}-more", 1)
        scripted.answer_heartbeat(Error.REBALANCE_IN_PROGRESS)
        assert subscription(accept_join(scripted, leader="another")).topics == [topic, f"{topic}-more"]


def test_a_leader_refreshes_its_metadata_when_an_assigned_partition_is_missing(
    scripted: ScriptedCoordinator, new: Callable[..., Consumer], topic: str
) -> None:
    consumer = new()
    consumer.subscribe([topic])
    with polling(consumer):
        accept_join(scripted)
        sync = scripted.request("SyncGroup")
        admin = AdminClient({"bootstrap.servers": scripted.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        # The broker's metadata follows the controller after a moment.
        wait_until(lambda: admin.list_topics(topic).topics[topic].error, "the topic is gone from the broker's metadata")
        kept = encode_assignment(Assignment([TopicPartition(topic, 0)]))
        scripted.answer(sync, SyncGroupResponse(0, "consumer", "range", kept))
        fetched = FetchedGroup("group", [FetchedTopic(topic, [FetchedPartition(0)])])
        scripted.answer(scripted.request("OffsetFetch"), OffsetFetchResponse(groups=[fetched]))
        request = accept_join(scripted)
    assert request.reason == f"topic {topic} was deleted"
