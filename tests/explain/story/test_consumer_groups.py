"""The story of a consumer group (KIP-848): what bumped each epoch, whom a revocation waited for, and who owns what."""

import pytest

from coordinator_logic.embedded_protocols import Assignment, TopicPartition, encode_assignment
from streaming.explain.story.model import Rebalance, Story, Trigger
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import lines_of
from tests.journal.observed import observed
from tests.logic.driver import reading
from tests.logic.groups.consumer.driver import REVOKE_MS, SESSION_MS, Consumer, DrivenConsumers, description


@pytest.fixture
def driven() -> DrivenConsumers:
    return DrivenConsumers()


def told(driven: DrivenConsumers, skip: int = 0) -> Story:
    """The story of the journal without its first entries."""
    return observed(StoryTeller(driven.group_id), driven.journal[skip:]).story()


def last(driven: DrivenConsumers) -> Rebalance:
    """The newest rebalance."""
    return told(driven).rebalances[-1]


def triggers(driven: DrivenConsumers) -> list[tuple[Trigger, bool]]:
    """The possible causes of the newest rebalance, each with its certainty."""
    return [(cause.trigger, cause.is_certain) for cause in last(driven).causes]


def test_the_first_member_begins_epoch_2_and_gets_all_partitions(driven: DrivenConsumers) -> None:
    Consumer(driven, "a").join("t", topics={"t": 3})
    (rebalance,) = told(driven).rebalances
    assert (rebalance.group_type, rebalance.generation, rebalance.cause.trigger) == (
        "consumer",
        2,
        Trigger.MEMBER_JOINED,
    )
    assert [one.member for one in rebalance.came] == ["a"]
    assert rebalance.ended is not None
    assert [(one.member, one.before, one.after) for one in rebalance.shares] == [("a", {}, {"t": [0, 1, 2]})]


def test_a_rebalance_names_the_member_whose_revocation_it_waited_for(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    a.beat()
    driven.sleep(700)
    began = told(driven).rebalances[-1].began
    waiting = told(driven).now
    assert [(one.member, one.what[:9]) for one in waiting.waits_for] == [("a", "to revoke")]
    assert waiting.deadline == waiting.waits_for[0].since + REVOKE_MS
    driven.converge(a, b)
    rebalance = last(driven)
    assert ("a", began + 700) in [(one.member, one.until) for one in rebalance.waited_for]
    assert rebalance.ended is not None
    assert {one.member: (len(one.before.get("t", [])), len(one.after.get("t", []))) for one in rebalance.shares} == {
        "a": (2, 1),
        "b": (0, 1),
    }
    assert rebalance.moves is not None
    assert (rebalance.moves.moved, rebalance.moves.needless) == (1, 0)
    now = told(driven).now
    assert (now.state, now.waits_for, now.deadline) == ("Stable", [], None)
    assert sorted((one.member, one.epoch) for one in now.members) == [("a", 3), ("b", 3)]


def test_a_member_that_does_not_revoke_in_time_is_the_cause_of_the_next_epoch(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    a.beat()
    for _ in range(4):
        driven.sleep(REVOKE_MS // 3)
        b.beat()
    assert triggers(driven) == [(Trigger.DID_NOT_REVOKE, True)]
    first, second, third = told(driven).rebalances
    assert (first.is_interrupted, second.is_interrupted, third.cause.member) == (False, True, "a")


def test_a_session_that_ends_is_told_from_a_member_that_leaves(driven: DrivenConsumers) -> None:
    a, b = (Consumer(driven, name).join("t", topics={"t": 2}) for name in "ab")
    driven.converge(a, b)
    b.leave()
    assert triggers(driven) == [(Trigger.MEMBER_LEFT, False), (Trigger.POLL_TIMEOUT, False)]
    driven.converge(a)
    driven.sleep(SESSION_MS + 1)
    assert triggers(driven) == [(Trigger.SESSION_EXPIRED, True)]
    assert told(driven).now.state == "Empty"
    assert last(driven).ended is not None


def test_other_topics_of_a_member_and_other_partitions_of_a_topic_are_told_apart(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2, "u": 1})
    a.beat(subscribed_topic_names=["t", "u"])
    assert triggers(driven) == [(Trigger.SUBSCRIPTION_CHANGED, True)]
    assert last(driven).cause.text == "+u"
    driven.topics_described(description("t", 4))
    a.beat()
    assert triggers(driven) == [(Trigger.TOPIC_CHANGED, True)]


def test_a_classic_group_that_becomes_a_consumer_group_goes_on_with_its_owners(driven: DrivenConsumers) -> None:
    (member,) = driven.join_with_members(1, protocols=reading("t"))
    owned = [TopicPartition("t", 0), TopicPartition("t", 1)]
    driven.sync(member, {member.member_id: encode_assignment(Assignment(owned))})
    Consumer(driven, "b").join("t", topics={"t": 2})
    story = told(driven)
    assert story.group_type == "consumer"
    assert [(one.group_type, one.cause.trigger) for one in story.rebalances] == [
        ("classic", Trigger.MEMBER_JOINED),
        ("consumer", Trigger.MEMBER_JOINED),
    ]
    assert [one.member for one in story.rebalances[-1].came] == ["b"]
    assert {one.member: one.partitions for one in story.now.members} == {member.member_id: {"t": [0, 1]}, "b": {}}


def test_the_words_have_epochs_and_what_the_group_waits_for(driven: DrivenConsumers) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    Consumer(driven, "b").join("t")
    a.beat()
    text = "\n".join(lines_of(told(driven)))
    assert "member joined -> epoch 3" in text
    assert "to revoke t " in text
    assert "goes on without them at" in text


@pytest.mark.parametrize("skip", range(0, 16, 3))
def test_a_journal_without_its_beginning_is_told_as_far_as_it_goes(driven: DrivenConsumers, skip: int) -> None:
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    b = Consumer(driven, "b").join("t")
    driven.converge(a, b)
    b.leave()
    driven.converge(a)
    story = told(driven, skip)
    assert story.is_complete == (skip == 0)
    assert story.rebalances[-1].cause.trigger == Trigger.MEMBER_LEFT
    assert list(lines_of(story))
