"""A story that begins in the middle: what the group was then comes from the entries before, or is not known."""

from typing import NamedTuple

from streaming.explain.page.of_group import ToldGroup
from streaming.explain.story.model import Story, Trigger
from streaming.explain.story.of_all_groups import RebalancesOfAllGroups
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import lines_of, now_lines
from tests.explain.page.scripted import ScriptedGroup
from tests.explain.page.scripted import told as page_told
from tests.explain.story.test_story import leaving
from tests.journal.observed import observed
from tests.logic.driver import REBALANCE_MS, SESSION_MS, Driven, Joined, joined
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers, description

PAUSE_MS = 300_000


class StableGroup(NamedTuple):
    """A group whose three members have done nothing for five minutes, until one of them commits."""

    driven: Driven
    members: list[Joined]


def stable_group() -> StableGroup:
    driven = Driven()
    members = driven.stable_group(3)
    driven.sleep_with_heartbeats(PAUSE_MS, *members)
    driven.commit(members[0], offsets={("orders", 0): 1})
    return StableGroup(driven, members)


def since(driven: Driven, age_ms: int) -> Story:
    """The story of so much time before the newest entry."""
    return observed(StoryTeller(driven.group_id, driven.journal[-1].timestamp - age_ms), driven.journal).story()


def whole(driven: Driven) -> Story:
    return observed(StoryTeller(driven.group_id), driven.journal).story()


def test_a_group_without_a_rebalance_in_the_time_has_the_state_and_the_members_of_before() -> None:
    driven, members = stable_group()
    story = since(driven, 60_000)
    assert story.now == whole(driven).now
    assert (story.now.state, story.now.knows_members) == ("Stable", True)
    assert {one.member for one in story.now.members} == {one.member_id for one in members}
    assert (story.rebalances, story.is_complete, story.summary.not_stable_share) == ([], True, 0)
    assert story.first == driven.journal[-1].timestamp - 60_000
    assert next(now_lines(story)).endswith(" in generation 1, 3 members")


def test_a_consumer_group_has_its_epochs_and_partitions_of_before() -> None:
    driven = DrivenConsumers()
    a, b = (Consumer(driven, name).join("t", topics={"t": 4}) for name in "ab")
    driven.converge(a, b)
    driven.sleep(1_000)
    driven.topics_described(description("t", 5))
    a.beat()
    story = since(driven, 500)
    assert story.now == whole(driven).now
    assert (story.now.knows_members, story.is_complete, story.group_type) == (True, True, "consumer")
    assert [one.cause.trigger for one in story.rebalances] == [Trigger.TOPIC_CHANGED]
    assert sorted(len(one.partitions["t"]) for one in story.now.members) == [2, 3]


def test_a_rebalance_that_goes_on_at_the_beginning_is_told_and_one_that_has_ended_is_not() -> None:
    driven, _ = stable_group()
    begun = driven.now
    driven.join_new("newcomer")
    driven.sleep(2_000)
    driven.join_new("another")
    story = since(driven, 1_000)
    (rebalance,) = story.rebalances
    assert (rebalance.began, rebalance.cause.trigger) == (begun, Trigger.MEMBER_JOINED)
    assert story.summary.not_stable_share == 1


def test_a_cause_needs_the_members_of_before() -> None:
    driven, members = stable_group()
    driven.sleep(1)
    driven.send("LeaveGroup", leaving(members[1]), version=5, client="operator")
    (rebalance,) = since(driven, 0).rebalances
    assert rebalance.cause.trigger == Trigger.REMOVED_BY_ANOTHER
    assert [one.name.split(" at ")[0] for one in rebalance.went] == ["client-1"]


def test_the_time_that_a_consumer_group_is_not_stable_counts_once() -> None:
    driven = DrivenConsumers()
    a = Consumer(driven, "a").join("t", topics={"t": 2})
    driven.sleep(10_000)
    b = Consumer(driven, "b").join("t")
    driven.sleep(1_000)
    driven.converge(a, b)
    assert whole(driven).summary.not_stable_share <= 1


def test_a_journal_without_the_groups_beginning_does_not_make_it_empty() -> None:
    driven, members = stable_group()
    skipped = len(driven.journal) - 1

    def part() -> Story:
        return observed(StoryTeller(driven.group_id), driven.journal[skipped:]).story()

    now = part().now
    assert (now.state, now.since, now.members, now.knows_members) == ("Unknown", None, [], False)
    assert (part().group_type, part().is_complete) == ("Unknown", False)
    assert list(now_lines(part())) == ["Now: state not known, members not known"]
    driven.join_new("newcomer")
    assert (part().now.state, part().group_type) == ("PreparingRebalance", "classic")
    assert next(now_lines(part())).endswith(", at least 1 member")
    driven.leave(*members)
    driven.sleep(REBALANCE_MS + SESSION_MS)
    driven.sleep(REBALANCE_MS + SESSION_MS)
    assert (part().now.state, part().now.knows_members) == ("Empty", True)
    assert ", 0 members" in next(now_lines(part()))


def test_a_consumer_group_whose_members_are_not_known_is_neither_empty_nor_stable() -> None:
    driven = DrivenConsumers()
    a, b = (Consumer(driven, name).join("t", topics={"t": 4}) for name in "ab")
    driven.converge(a, b)
    skipped = len(driven.journal)
    a.beat(subscribed_topic_names=["t", "u"], topics={"u": 1})
    story = observed(StoryTeller(driven.group_id), driven.journal[skipped:]).story()
    assert story.group_type == "consumer"
    assert story.now.state in ("Assigning", "Reconciling", "Unknown")
    assert not story.now.knows_members
    (rebalance,) = story.rebalances
    assert {one.trigger for one in rebalance.causes} == {Trigger.MEMBER_JOINED, Trigger.SUBSCRIPTION_CHANGED}
    assert not rebalance.cause.is_certain
    assert list(lines_of(story))


def test_the_pages_lanes_begin_with_the_members_of_before_and_what_they_own() -> None:
    group = ScriptedGroup()
    group.start("a", "b")
    group.sleep(PAUSE_MS)
    group.expire(next(iter(group.members)))
    group.sleep(PAUSE_MS)
    group.commit()
    begin = group.now - 60_000
    story, lanes = page_told(group.journal, since=begin)
    (lane,) = lanes.lanes
    (stay,) = lane.stays
    assert (stay.member_id, stay.since, stay.began_before) == (*group.members, begin, True)
    assert [(time, len(held)) for time, held in lane.owned] == [(begin, 12)]
    assert len(lane.commits) == 1
    assert [one.member for one in story.now.members] == list(group.members)


def test_the_lag_of_a_time_knows_the_offsets_that_were_committed_before() -> None:
    driven, members = stable_group()
    driven.sleep(1_000)
    driven.commit(members[0], offsets={("orders", 1): 7})
    told = observed(ToldGroup(driven.group_id, driven.now, with_lag=True), driven.journal)
    assert told.committed is not None
    assert told.committed.samples()[-1].offsets == {("orders", 0): 1, ("orders", 1): 7}


def test_of_all_groups_only_rebalances_that_end_in_the_time_are_told_with_what_was_known_before() -> None:
    driven, members = stable_group()
    driven.sleep(1)
    driven.send("LeaveGroup", leaving(members[1]), version=5, client="operator")
    begin = driven.now
    answers = [driven.rejoin(one) for one in (members[0], members[2])]
    driven.sync_all([joined(answer) for answer in answers])
    told = RebalancesOfAllGroups(begin)
    (one,) = [one for entry in driven.journal for one in told.add(entry)]
    assert one.rebalance.cause.trigger == Trigger.REMOVED_BY_ANOTHER
    assert (one.rebalance.members_before, one.rebalance.members_after) == (3, 2)
