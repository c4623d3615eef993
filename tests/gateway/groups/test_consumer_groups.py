"""Consumer groups (KIP-848) through the gateway's handlers, with the coordinator's own logic behind them."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from msgspec.structs import replace

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from coordinator_logic.messages import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    GroupToFetch,
    JoinGroupRequest,
    ListGroupsRequest,
    MemberAssignment,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    SyncGroupRequest,
    TopicToCommit,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.gateway.wire.values import text_of_topic_id, topic_id_of_text
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.gateway.groups.driven.member import GROUP, GatewayMember
from tests.logic.driver import reading
from tests.support.parts import consumer_group
from tests.support.virtual_time import run_in_virtual_time

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 8, 9, 11, 14, 15, 16
TXN_OFFSET_COMMIT, DESCRIBE = 28, 69
ALL_OPERATIONS = 0x7FFF


class Brokers:
    """What a client may see on brokers with an authorizer: topics with partition counts and ids, and hidden topics."""

    def __init__(self, visible: Mapping[str, tuple[int, str]], hidden: Mapping[str, str]) -> None:
        self._visible, self._hidden = visible, hidden

    async def forward(self, payload: Any) -> Any:
        if payload.__api_key__ != 3:
            return _Allowed()
        topics = tuple(self._topic(topic) for topic in payload.topics)
        return MetadataResponse(throttle_time=None, brokers=(), topics=topics)  # type: ignore[arg-type]

    def _topic(self, asked: Any) -> MetadataResponseTopic:
        by_id = {topic_id_of_text(of_id): name for name, (_, of_id) in self._visible.items()}
        by_id |= {topic_id_of_text(of_id): name for name, of_id in self._hidden.items()}
        name: Any = asked.name or by_id.get(asked.topic_id)
        if name in self._hidden:
            error, partitions, found = ErrorCode.topic_authorization_failed, 0, topic_id_of_text(self._hidden[name])
            name = asked.name
        elif name in self._visible:
            error, partitions, found = ErrorCode.none, self._visible[name][0], topic_id_of_text(self._visible[name][1])
        else:
            error, partitions, found = ErrorCode.unknown_topic_or_partition, 0, None
        return MetadataResponseTopic(
            error_code=error,
            name=name,
            topic_id=found,
            partitions=tuple(
                MetadataResponsePartition(error_code=ErrorCode.none, partition_index=index, leader_id=1)  # type: ignore[arg-type]
                for index in range(partitions)
            ),
            topic_authorized_operations=ALL_OPERATIONS,  # type: ignore[arg-type]
        )


class _Allowed:
    """A response in which nothing is denied, of any API that is used to find out about permissions."""

    error_code = ErrorCode.none
    groups: tuple[Any, ...] = ()
    cluster_authorized_operations = ALL_OPERATIONS

    @property
    def topics(self) -> Any:
        partition = type("Partition", (), {"error_code": ErrorCode.none})
        return (type("Topic", (), {"partitions": (partition,)}),)


def play(story: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(story)


def scene(**topics: int) -> tuple[LogicCoordinator, Cluster, Gateway]:
    coordinator, cluster = LogicCoordinator(), Cluster(**topics)
    return coordinator, cluster, Gateway(coordinator, cluster)


# ---- topics of heartbeats ------------------------------------------------------------------------------------------


def test_a_heartbeat_describes_the_topics_that_exist() -> None:
    coordinator, _, gateway = scene(t=2)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        joined = await member.join("t", "missing")
        assert (joined.error_code.name, joined.member_id, joined.heartbeat_interval.total_seconds()) == ("none", "m", 1)
        await member.beat()
        first, second = coordinator.sent("ConsumerGroupHeartbeat")
        assert [(topic.name, topic.topic_id, topic.partitions) for topic in first.topics] == [("t", topic_id(0), 2)]
        assert second.topics == []

    play(story())


def test_a_topic_that_the_caller_may_not_describe_fails_the_heartbeat_and_matches_no_pattern() -> None:
    coordinator, cluster = LogicCoordinator(), Cluster(seen=1, secret=1)
    brokers = Brokers({"seen": (1, cluster.id_of("seen"))}, {"secret": cluster.id_of("secret")})
    gateway = Gateway(coordinator, cluster, brokers.forward)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        assert (await member.join("seen", "secret")).error_code is ErrorCode.topic_authorization_failed
        assert coordinator.events == []
        await member.join(pattern="se.*")
        await member.beat()
        assert member.owned == {cluster.id_of("seen"): {0}}

    play(story())


def test_a_pattern_that_cannot_be_read_is_refused_by_the_coordinator() -> None:
    _, _, gateway = scene(t=1)

    async def story() -> None:
        refused = await GatewayMember(gateway, "m").join(pattern="(")
        assert refused.error_code is ErrorCode.invalid_regular_expression

    play(story())


def test_a_member_that_converts_a_classic_group_brings_the_topics_of_the_classic_members() -> None:
    coordinator, _, gateway = scene(t=2, u=2)

    async def story() -> None:
        join = JoinGroupRequest(GROUP, 10_000, "consumer", reading("u"), 10_000)
        member_id = (await gateway.ask(JOIN_GROUP, 5, join)).member_id
        generation = (await gateway.ask(JOIN_GROUP, 5, replace(join, member_id=member_id))).generation_id
        assigned = encode_assignment(Assignment([TopicPartition("u", 0), TopicPartition("u", 1)]))
        sync = SyncGroupRequest(GROUP, generation, member_id, assignments=[MemberAssignment(member_id, assigned)])
        assert (await gateway.ask(SYNC_GROUP, 3, sync)).error_code is ErrorCode.none
        assert (await GatewayMember(gateway, "converts").join("t")).error_code is ErrorCode.none
        consumer = consumer_group(coordinator.group(GROUP).group)
        assert consumer is not None
        assert consumer.members[member_id].assigned.keys() == {topic_id(1)}
        assert set(consumer.topics) == {"t", "u"}

    play(story())


# ---- a coordinator that is slow or away ----------------------------------------------------------------------------


def test_a_heartbeat_without_a_response_is_answered_so_that_the_client_sends_all_its_fields() -> None:
    coordinator, _, gateway = scene(t=1)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        await member.join("t")
        coordinator.is_silent = True
        assert (await member.beat()).error_code is ErrorCode.coordinator_not_available
        coordinator.catch_up()
        await member.beat()
        coordinator.is_away = True
        assert (await member.beat()).error_code is ErrorCode.coordinator_load_in_progress

    play(story())


def test_groups_are_listed_in_the_order_of_a_brokers_hash_table() -> None:
    _, _, gateway = scene(t=1)

    async def story() -> None:
        for number in range(1, 7):
            await GatewayMember(gateway, "m", f"grp-{number}").join("t")
        listed = (await gateway.ask(LIST_GROUPS, 5, ListGroupsRequest())).groups
        assert [group.group_id for group in listed] == [f"grp-{number}" for number in (2, 4, 1, 6, 3, 5)]

    play(story())


def test_a_late_response_answers_the_next_heartbeat() -> None:
    coordinator, _, gateway = scene(t=2)

    async def story() -> None:
        first, second = GatewayMember(gateway, "first"), GatewayMember(gateway, "second")
        await first.join("t")
        coordinator.is_silent = True
        assert (await second.join("t")).error_code is ErrorCode.coordinator_not_available
        coordinator.catch_up()
        await asyncio.sleep(0)
        assert second.epoch == 0
        await second.join("t")
        assert second.epoch == consumer_group(coordinator.group(GROUP).group).members["second"].epoch
        # The heartbeat that the late response answered has gone on as the member that has received it.
        assert coordinator.sent("ConsumerGroupHeartbeat")[-1].member_epoch == second.epoch

    play(story())


@pytest.mark.parametrize("silences", [1, 2, 3])
def test_members_converge_unfenced_although_no_response_is_in_time(silences: int) -> None:
    """Each batch takes longer than heartbeats wait; members send all fields after each error, as Kafka's clients do."""
    coordinator, _, gateway = scene(t=6)

    async def slow(*members: GatewayMember) -> None:
        for _ in range(silences):
            coordinator.is_silent = True
            for member in members:
                await (
                    member.join("t") if member.epoch == 0 else member.beat(is_full=True, subscribed_topic_names=["t"])
                )
        coordinator.catch_up()
        await asyncio.sleep(0)

    async def story() -> None:
        members = [GatewayMember(gateway, f"m{number}") for number in range(3)]
        for joined in range(1, 4):
            for _ in range(8):
                await slow(*members[:joined])
        shares = [owned for member in members for owned in member.owned.values()]
        assert sorted(map(len, shares)) == [2, 2, 2]
        assert set().union(*shares) == set(range(6))

    play(story())


def test_a_first_join_without_a_member_id_waits_long() -> None:
    coordinator, _, gateway = scene(t=1)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        coordinator.is_silent = True
        began = loop.time()
        assert (await GatewayMember(gateway, "").join("t", version=0)).error_code is ErrorCode.coordinator_not_available
        assert loop.time() - began >= 20

    play(story())


# ---- ConsumerGroupDescribe -----------------------------------------------------------------------------------------


def test_several_groups_are_described_in_the_order_of_the_request() -> None:
    _, _, gateway = scene(t=2)

    async def story() -> None:
        await GatewayMember(gateway, "m").join("t")
        answer = await gateway.ask(DESCRIBE, 1, ConsumerGroupDescribeRequest(["absent", GROUP, "gone"]))
        assert [group.group_id for group in answer.groups] == ["absent", GROUP, "gone"]
        assert [group.error_code.name for group in answer.groups] == [
            "group_id_not_found",
            "none",
            "group_id_not_found",
        ]
        (member,) = answer.groups[1].members
        (assigned,) = member.assignment.topic_partitions
        assert (assigned.topic_name, assigned.partitions, member.member_type) == ("t", (0, 1), 1)

    play(story())


def test_a_group_with_a_topic_that_the_caller_may_not_describe_is_not_described() -> None:
    coordinator, cluster = LogicCoordinator(), Cluster(t=1)
    visible = Gateway(coordinator, cluster)
    hidden = Gateway(coordinator, cluster, Brokers({}, {"t": cluster.id_of("t")}).forward)

    async def story() -> None:
        await GatewayMember(visible, "m").join("t")
        (group,) = (await hidden.ask(DESCRIBE, 0, ConsumerGroupDescribeRequest([GROUP]))).groups
        assert (group.error_code, group.members) == (ErrorCode.topic_authorization_failed, ())

    play(story())


# ---- offsets by topic ids ------------------------------------------------------------------------------------------


def committed(answer: Any) -> dict[str, list[tuple[int, str]]]:
    """The results of an OffsetCommit v10 by topic id."""
    return {
        text_of_topic_id(topic.topic_id): [(each.partition_index, each.error_code.name) for each in topic.partitions]
        for topic in answer.topics
    }


def commit(member: GatewayMember, *topic_ids: str, partition: int = 0) -> OffsetCommitRequest:
    topics = [TopicToCommit("", [PartitionToCommit(partition, 7)], each) for each in topic_ids]
    return OffsetCommitRequest(GROUP, topics, member.epoch, member.member_id)


def test_offsets_are_committed_and_fetched_by_topic_id() -> None:
    coordinator, cluster, gateway = scene(t=1, other=1)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        await member.join("t")
        known, unknown = cluster.id_of("t"), topic_id(77)
        answer = await gateway.ask(OFFSET_COMMIT, 10, commit(member, unknown, known))
        assert committed(answer) == {known: [(0, "none")], unknown: [(0, "unknown_topic_id")]}
        (event,) = coordinator.sent("OffsetCommit")
        assert [topic.name for topic in event.topics] == ["t"]

        topics = [TopicToFetch("", [0], each) for each in (unknown, known)]
        groups = [
            GroupToFetch(GROUP, topics, "m", member.epoch),
            GroupToFetch(GROUP, None),
            GroupToFetch(GROUP, topics, "m", member.epoch - 1),
        ]
        asked, everything, stale = (await gateway.ask(OFFSET_FETCH, 10, OffsetFetchRequest(groups=groups))).groups
        found = {
            text_of_topic_id(topic.topic_id): (
                topic.partitions[0].committed_offset,
                topic.partitions[0].error_code.name,
            )
            for topic in asked.topics
        }
        assert found == {known: (7, "none"), unknown: (-1, "unknown_topic_id")}
        assert [text_of_topic_id(topic.topic_id) for topic in everything.topics] == [known]
        assert (stale.error_code.name, stale.topics) == ("stale_member_epoch", ())

    play(story())


def test_the_id_of_a_topic_that_was_created_again_is_unknown() -> None:
    _, cluster, gateway = scene(t=1)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        await member.join("t")
        before = cluster.id_of("t")
        await gateway.ask(OFFSET_COMMIT, 10, commit(member, before))
        cluster.create("t", 1)
        await gateway.notifier.refresh()
        answer = await gateway.ask(OFFSET_COMMIT, 10, commit(member, before))
        assert committed(answer) == {before: [(0, "unknown_topic_id")]}

    play(story())


def test_a_partition_that_does_not_exist_and_a_hidden_topic_are_refused() -> None:
    coordinator, cluster = LogicCoordinator(), Cluster(t=1, secret=1)
    brokers = Brokers({"t": (1, cluster.id_of("t"))}, {"secret": cluster.id_of("secret")})
    gateway = Gateway(coordinator, cluster, brokers.forward)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        await member.join("t")
        ids = cluster.id_of("t"), cluster.id_of("secret")
        answer = await gateway.ask(OFFSET_COMMIT, 10, commit(member, *ids, partition=1))
        assert committed(answer) == {
            ids[0]: [(1, "unknown_topic_or_partition")],
            ids[1]: [(1, "topic_authorization_failed")],
        }

    play(story())


def test_offsets_in_a_transaction_are_accepted_with_the_members_epoch_only() -> None:
    _, _, gateway = scene(t=1)

    async def story() -> None:
        member = GatewayMember(gateway, "m")
        await member.join("t")
        topics = [TxnTopicToCommit("t", [TxnPartitionToCommit(0, 5)])]
        for epoch, error in ((member.epoch, "none"), (member.epoch + 1, "illegal_generation")):
            request = TxnOffsetCommitRequest("txn", GROUP, 1, 0, topics, epoch, "m")
            (topic,) = (await gateway.ask(TXN_OFFSET_COMMIT, 4, request)).topics
            assert [partition.error_code.name for partition in topic.partitions] == [error]

    play(story())


def test_groups_are_listed_by_type_and_a_consumer_group_is_no_classic_one() -> None:
    _, _, gateway = scene(t=1)

    async def story() -> None:
        await GatewayMember(gateway, "m").join("t")
        for group_type, expected in (("consumer", [(GROUP, "Stable", "consumer")]), ("classic", [])):
            answer = await gateway.ask(LIST_GROUPS, 5, ListGroupsRequest([], [group_type]))
            assert [(each.group_id, each.group_state, each.group_type) for each in answer.groups] == expected
        (described,) = (await gateway.ask(DESCRIBE_GROUPS, 6, DescribeGroupsRequest([GROUP]))).groups
        assert described.error_code is ErrorCode.group_id_not_found

    play(story())
