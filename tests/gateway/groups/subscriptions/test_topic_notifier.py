"""Groups learn what becomes of their topics, from heartbeats and from events of their own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from coordinator_logic.messages import JoinGroupRequest, TopicDescription, TopicsDeletedRequest
from streaming.gateway.groups.subscriptions.topic_notifier import GONE_AFTER_SECONDS
from streaming.gateway.security.topic_catalog import EXISTING_TTL_SECONDS, RENEWAL_SECONDS
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.gateway.groups.driven.member import GROUP, GatewayMember
from tests.logic.driver import reading
from tests.support.parts import consumer_group
from tests.support.virtual_time import run_in_virtual_time

JOIN_GROUP = 11


class Scene:
    """A coordinator, a cluster, and a gateway with one member ``m``."""

    def __init__(self, **topics: int) -> None:
        self.coordinator, self.cluster = LogicCoordinator(), Cluster(**topics)
        self.gateway = Gateway(self.coordinator, self.cluster)
        self.member = GatewayMember(self.gateway, "m")

    async def settle(self) -> None:
        """Let the gateway look at the topics, and the member follow."""
        await self.gateway.notifier.refresh()
        await self.member.beat()
        await self.member.beat()

    async def settle_deletions(self) -> None:
        """Let the gateway look at the topics until one that is missing is gone, and the member follow."""
        await self.settle()
        await asyncio.sleep(GONE_AFTER_SECONDS)
        await self.settle()
        await self.settle()

    def move_to_another_gateway(self) -> None:
        """As after a restart: the new gateway remembers nothing."""
        self.gateway = self.member.gateway = Gateway(self.coordinator, self.cluster)

    def pass_time(self, ms: int) -> None:
        self.coordinator.group(GROUP).sleep(ms)

    @property
    def owned(self) -> dict[str, set[int]]:
        return self.member.owned


def play(scene: Scene, story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    run_in_virtual_time(story(scene))


def join_request(topic: str, member_id: str = "") -> JoinGroupRequest:
    """The join of a member that speaks the classic protocol."""
    return JoinGroupRequest(GROUP, 10_000, "consumer", reading(topic), 10_000, member_id)


def test_a_topic_that_grows_is_described_once() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        assert scene.owned == {topic_id(0): {0, 1}}
        scene.cluster.grow("t", 3)
        for _ in range(3):
            await scene.settle()
        assert scene.owned == {topic_id(0): {0, 1, 2}}
        (described,) = scene.coordinator.sent("TopicsDescribed")
        assert described.topics == [TopicDescription("t", topic_id(0), 3)]

    play(Scene(t=2), story)


def test_a_topic_that_is_created_after_its_members_have_joined_is_described() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("later")
        assert scene.owned == {}
        scene.cluster.create("later", 1)
        await scene.settle()
        assert scene.owned == {topic_id(0): {0}}

    play(Scene(), story)


def test_a_topic_is_gone_when_it_was_missing_for_some_time() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t", "kept")
        await scene.settle()
        del scene.cluster.topics_now["t"]
        await scene.settle()
        await asyncio.sleep(0.9 * GONE_AFTER_SECONDS)
        await scene.settle()
        assert scene.coordinator.sent("TopicsDeleted") == []
        await scene.settle_deletions()
        (deleted,) = scene.coordinator.sent("TopicsDeleted")
        assert deleted == TopicsDeletedRequest(["t"], {"t": [topic_id(0)]})
        assert scene.owned == {topic_id(1): {0}}

    play(Scene(t=1, kept=1), story)


def test_a_topic_that_a_client_has_deleted_is_gone_when_a_broker_misses_it_once() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t", "kept")
        await scene.settle()
        scene.gateway.topics_changed(["t"])
        # The broker that is asked has yet to hear of the deletion.
        await scene.settle()
        assert scene.coordinator.sent("TopicsDeleted") == []
        del scene.cluster.topics_now["t"]
        await scene.settle()
        assert scene.coordinator.sent("TopicsDeleted") == [TopicsDeletedRequest(["t"], {"t": [topic_id(0)]})]
        assert scene.owned == {topic_id(1): {0}}

    play(Scene(t=1, kept=1), story)


def test_a_topic_created_after_the_deletion_is_not_gone_when_a_broker_misses_it_once() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        scene.gateway.topics_changed(["t"])
        scene.cluster.create("t", 1)
        await asyncio.sleep(2 * RENEWAL_SECONDS)
        # The heartbeat brings the new topic.
        await scene.member.beat(subscribed_topic_names=["t"])
        created = dict(scene.cluster.topics_now)
        # Another broker has heard of the deletion only.
        scene.cluster.topics_now = {}
        await scene.settle()
        assert scene.coordinator.sent("TopicsDeleted") == [TopicsDeletedRequest(["t"], {"t": [topic_id(0)]})]
        scene.cluster.topics_now = created
        await scene.settle()
        assert scene.owned == {topic_id(1): {0}}
        assert len(scene.coordinator.sent("TopicsDeleted")) == 1

    play(Scene(t=1), story)


def test_a_topic_that_only_seemed_to_be_gone_is_described_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        topics, scene.cluster.topics_now = scene.cluster.topics_now, {}
        await scene.settle_deletions()
        assert scene.owned == {}
        scene.cluster.topics_now = topics
        await scene.settle()
        assert scene.owned == {topic_id(0): {0}}

    play(Scene(t=1), story)


def test_a_group_is_not_told_of_a_topic_that_is_missing_until_it_is_there_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        await scene.member.leave()
        topics, scene.cluster.topics_now = scene.cluster.topics_now, {}
        await asyncio.sleep(EXISTING_TTL_SECONDS)
        scene.member = GatewayMember(scene.gateway, "n", "another-group")
        await scene.member.join("t")
        await scene.settle()
        assert scene.owned == {}
        scene.cluster.topics_now = topics
        await scene.settle()
        assert scene.owned == {topic_id(0): {0}}

    play(Scene(t=1), story)


def test_the_time_that_a_topic_is_missing_starts_again_when_nobody_followed_it() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        topics, scene.cluster.topics_now = scene.cluster.topics_now, {}
        await scene.settle()
        await scene.member.leave()
        await scene.gateway.notifier.refresh()
        await asyncio.sleep(10 * GONE_AFTER_SECONDS)
        scene.cluster.topics_now = topics
        scene.member = GatewayMember(scene.gateway, "n", "another-group")
        await scene.member.join("t")
        scene.cluster.topics_now = {}
        await scene.settle()
        assert scene.coordinator.sent("TopicsDeleted") == []
        await scene.settle_deletions()
        assert len(scene.coordinator.sent("TopicsDeleted")) == 1

    play(Scene(t=1), story)


def test_a_topic_that_comes_back_with_another_id_is_deleted_and_described() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        scene.cluster.create("t", 2)
        await scene.settle()
        assert [api for api, _ in scene.coordinator.events if api.startswith("Topics")] == [
            "TopicsDeleted",
            "TopicsDescribed",
        ]
        assert scene.owned == {topic_id(1): {0, 1}}

    play(Scene(t=1), story)


def test_what_a_broker_says_that_lags_behind_is_ignored() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t", "u")
        await scene.settle()
        behind = dict(scene.cluster.topics_now)
        scene.cluster.grow("t", 5)
        scene.cluster.create("u", 1)
        await scene.settle()
        number = len(scene.coordinator.events)
        scene.cluster.topics_now = behind
        await scene.gateway.notifier.refresh()
        assert len(scene.coordinator.events) == number

    play(Scene(t=2, u=1), story)


def test_a_group_is_told_again_until_it_confirms() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        scene.cluster.grow("t", 2)
        scene.coordinator.is_away = True
        await scene.gateway.notifier.refresh()
        scene.coordinator.is_away = False
        assert scene.coordinator.sent("TopicsDescribed") == []
        for _ in range(2):
            await scene.settle()
        assert len(scene.coordinator.sent("TopicsDescribed")) == 1
        assert scene.owned == {topic_id(0): {0, 1}}

    play(Scene(t=1), story)


def test_a_gateway_to_which_a_member_moves_looks_up_what_it_subscribes_to() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        scene.move_to_another_gateway()
        scene.cluster.grow("t", 4)
        await scene.member.beat()
        await scene.settle()
        assert scene.owned == {topic_id(0): {0, 1, 2, 3}}
        assert len(scene.coordinator.sent("ConsumerGroupDescribe")) == 1

    play(Scene(t=2), story)


def test_a_topic_that_went_while_no_gateway_was_there_is_deleted() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        scene.move_to_another_gateway()
        del scene.cluster.topics_now["t"]
        await scene.member.beat()
        await scene.settle_deletions()
        assert [deleted.topics for deleted in scene.coordinator.sent("TopicsDeleted")] == [["t"]]
        assert scene.owned == {}

    play(Scene(t=2), story)


def test_topics_that_begin_to_match_a_pattern_go_with_the_next_heartbeat() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join(pattern="t-.*")
        await scene.member.beat()
        assert scene.owned == {topic_id(0): {0}}
        scene.cluster.create("t-2", 1)
        scene.cluster.create("other", 1)
        scene.pass_time(11_000)
        await scene.settle()
        assert scene.owned == {topic_id(0): {0}, scene.cluster.id_of("t-2"): {0}}
        described = [[topic.name for topic in beat.topics] for beat in scene.coordinator.sent("ConsumerGroupHeartbeat")]
        assert [names for names in described if names] == [["t-1"], ["t-2"]]
        assert scene.coordinator.sent("TopicsDescribed") == []

    play(Scene(**{"t-1": 1}), story)


def test_a_new_pattern_matches_a_topic_that_was_created_a_moment_after_all_topics_were_listed() -> None:
    async def story(scene: Scene) -> None:
        await scene.gateway.catalog.all_topics(0.0)
        scene.cluster.create("t-2", 1)
        await asyncio.sleep(RENEWAL_SECONDS / 2)
        await scene.member.join(pattern="t-.*")
        await scene.member.beat()
        assert scene.owned.keys() == {topic_id(0), topic_id(1)}, "the group resolves it again in 10 s at the earliest"

    play(Scene(**{"t-1": 1}), story)


def test_a_member_with_a_pattern_that_moves_to_another_gateway_gets_new_topics() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join(pattern="t-.*")
        await scene.member.beat()
        scene.move_to_another_gateway()
        scene.cluster.create("t-2", 1)
        scene.pass_time(11_000)
        await scene.member.beat()
        await scene.settle()
        await scene.settle()
        assert scene.owned.keys() == {topic_id(0), topic_id(1)}

    play(Scene(**{"t-1": 1}), story)


def test_no_pattern_matches_the_topics_of_the_coordinator() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join(pattern=".*")
        await scene.member.beat()
        assert scene.owned == {topic_id(0): {0}}

    play(Scene(**{"t": 1, "group-requests": 1}), story)


def test_a_classic_member_of_a_consumer_group_gets_topics_that_only_it_subscribes_to() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        joined = await scene.gateway.ask(JOIN_GROUP, 5, join_request("u"))
        assert joined.error_code.name == "member_id_required"
        joined = await scene.gateway.ask(JOIN_GROUP, 5, join_request("u", joined.member_id))
        assert joined.error_code.name == "none"
        await scene.settle()
        targets = consumer_group(scene.coordinator.group(GROUP).group).targets
        assert targets[joined.member_id] == {topic_id(1): [0]}

    play(Scene(t=1, u=1), story)


def test_without_members_nothing_is_looked_at() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join(pattern="t")
        await scene.member.leave()
        listings = scene.cluster.listings
        await scene.gateway.notifier.refresh()
        assert scene.cluster.listings == listings

    play(Scene(t=1), story)


def test_a_heartbeat_with_an_older_state_of_a_topic_is_put_right() -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t")
        await scene.settle()
        behind = dict(scene.cluster.topics_now)
        scene.cluster.create("t", 2)
        await scene.settle()
        newest = dict(scene.cluster.topics_now)
        scene.cluster.topics_now = behind
        another = Gateway(scene.coordinator, scene.cluster)
        scene.member.gateway = another
        await scene.member.beat(is_full=True, subscribed_topic_names=["t"])
        scene.cluster.topics_now = newest
        await another.notifier.refresh()
        for _ in range(2):
            await scene.member.beat()
        assert scene.owned == {topic_id(1): {0, 1}}

    play(Scene(t=1), story)


def test_topics_that_the_gateway_may_not_describe_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        await scene.member.join("t", "u")
        await scene.settle()
        scene.cluster.hidden.add("t")
        scene.cluster.grow("u", 2)
        await scene.settle_deletions()
        assert scene.owned == {topic_id(0): {0}, topic_id(1): {0, 1}}
        assert scene.coordinator.sent("TopicsDeleted") == []
        expected = "groups do not learn of changes of 1 topic: the brokers do not allow Describe on topic t "
        assert caplog.text.count(expected) == 1

    play(Scene(t=1, u=1), story)


def test_a_gateway_that_comes_to_know_a_group_looks_up_its_other_members() -> None:
    async def story(scene: Scene) -> None:
        other = GatewayMember(Gateway(scene.coordinator, scene.cluster), "other")
        await other.join("u")
        await scene.member.join("t")
        await scene.settle()
        scene.cluster.grow("u", 3)
        await scene.settle()
        await other.beat()
        assert other.owned == {topic_id(1): {0, 1, 2}}

    play(Scene(t=1, u=1), story)
