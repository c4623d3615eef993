"""Whom a classic group waited for, who owned what before and after, and what it waits for now."""

import msgspec

from coordinator_logic.records import QuarantinedStateDropped
from streaming.explain.story.model import Rebalance, Story
from streaming.explain.story.of_member import story_of
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import lines_of
from streaming.journal.fold import GroupFold
from tests.explain.story.test_story import assigned, leaving
from tests.journal.observed import observed
from tests.logic.driver import DELAY_MS, REBALANCE_MS, SESSION_MS, Driven, Joined, joined
from tests.support.parts import classic


def teller_of(driven: Driven) -> StoryTeller:
    """A teller of the journal until now."""
    return observed(StoryTeller(driven.group_id), driven.journal)


def told(driven: Driven) -> Story:
    """The story of the journal until now."""
    return teller_of(driven).story()


def waits(rebalance: Rebalance) -> list[tuple[str, str]]:
    """The members that a rebalance waited for, and for what."""
    return [(one.member, one.what) for one in rebalance.waited_for]


def _rebalancing(driven: Driven) -> tuple[Joined, Joined]:
    """Two members of a group, which own partitions 0 to 3, 300 ms after a newcomer has begun a rebalance."""
    first, second = assigned(driven, driven.join_with_members(2), {0: (0, 1), 1: (2, 3)})
    driven.join_new("newcomer")
    driven.sleep(300)
    return first, second


def test_a_rebalance_names_the_last_member_that_rejoined_and_the_leader() -> None:
    driven = Driven()
    first, second = _rebalancing(driven)
    first_again = driven.rejoin(first)
    driven.sleep(500)
    driven.rejoin(second)
    driven.sleep(200)
    leader = joined(first_again)
    driven.sync(leader, {leader.member_id: b""})
    rebalance = told(driven).rebalances[-1]
    assert waits(rebalance) == [
        (second.member_id, "to join, as the last one"),
        (leader.member_id, "to assign, as the leader"),
    ]
    assert [(one.until or 0) - one.since for one in rebalance.waited_for] == [800, 200]


def test_a_rebalance_names_the_members_that_did_not_rejoin_in_time() -> None:
    driven = Driven()
    first, second = _rebalancing(driven)
    driven.rejoin(first)
    driven.sleep_with_heartbeats(REBALANCE_MS + 1, second)
    (removed,) = [one for one in told(driven).rebalances[-1].waited_for if one.member == second.member_id]
    assert "did not rejoin within the rebalance timeout" in removed.what


def test_now_has_the_members_that_may_be_missing_and_the_time_at_which_the_group_goes_on() -> None:
    driven = Driven()
    first, second = _rebalancing(driven)
    now = told(driven).now
    assert now.state == "PreparingRebalance"
    assert {one.member for one in now.waits_for} == {first.member_id, second.member_id}
    assert now.since is not None
    assert now.deadline == now.since + REBALANCE_MS
    lines = [*lines_of(told(driven))]
    assert sum(line.startswith("  may wait for client-") for line in lines) == 2
    assert "  a member that rejoins unchanged leaves no entry in the journal: it may have rejoined already" in lines
    for member in (first, second):
        driven.rejoin(member)
    now = told(driven).now
    assert (now.state, now.generation) == ("CompletingRebalance", 2)
    assert [one.what for one in now.waits_for] == ["to assign, as the leader"]
    assert [line.partition(" for ")[0] for line in lines_of(told(driven)) if " to assign, as " in line][-1] == "  waits"


def test_the_initial_delay_waits_for_nobody_in_particular() -> None:
    driven = Driven()
    driven.join_new("first")
    driven.sleep(DELAY_MS // 2)
    now = told(driven).now
    assert (now.state, now.waits_for, now.deadline) == ("PreparingRebalance", [], None)


def test_partitions_before_and_after_are_told_of_the_members_whose_partitions_changed() -> None:
    driven = Driven()
    members = assigned(driven, driven.join_with_members(3), {0: (0, 1), 1: (2, 3), 2: (4, 5)})
    driven.sleep_with_heartbeats(SESSION_MS + 1, *members[:2])
    rejoined = [driven.rejoin(member) for member in members[:2]]
    assigned(driven, [joined(one) for one in rejoined], {0: (0, 1, 4, 5), 1: (2, 3)})
    shares = {one.member: (one.before, one.after) for one in told(driven).rebalances[-1].shares}
    assert shares == {
        members[0].member_id: ({"orders": [0, 1]}, {"orders": [0, 1, 4, 5]}),
        members[2].member_id: ({"orders": [4, 5]}, {}),
    }
    owned = {one.member: one.partitions for one in told(driven).now.members}
    assert owned == {members[0].member_id: {"orders": [0, 1, 4, 5]}, members[1].member_id: {"orders": [2, 3]}}
    assert "orders 0-1 -> orders 0-1,4-5" in "\n".join(lines_of(told(driven)))


def test_a_member_is_found_by_its_member_id_its_instance_id_and_its_client_id() -> None:
    driven = Driven()
    members = driven.stable_group(2, static=1)
    teller = teller_of(driven)
    static, dynamic = members[0].member_id, members[1].member_id
    assert teller.member_ids("instance-0") == {"instance-0", static}
    assert dynamic in teller.member_ids("client-1")
    assert teller.member_ids(dynamic) == {dynamic}


def test_the_story_of_a_member_has_only_rebalances_that_concern_it() -> None:
    driven = Driven()
    first, second = driven.stable_group(2)
    driven.leave(second)
    driven.sync_all([joined(driven.rejoin(first))])
    driven.join_new("third")
    story, ids = told(driven), teller_of(driven).member_ids("client-1")
    assert len(story.rebalances) == 3
    assert len(story_of(story, ids).rebalances) == 2
    assert story_of(story, {"nobody"}).rebalances == []
    assert story_of(story, ids).summary == story.summary


def test_a_story_that_is_asked_for_in_the_middle_of_a_turn_does_not_change_what_follows() -> None:
    driven = Driven()
    first, second = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    driven.send("LeaveGroup", leaving(first), version=5, client="client-0")
    assert second.member_id not in classic(driven.group).members
    teller = StoryTeller(driven.group_id)
    fold = GroupFold(teller)
    for entry in driven.journal:
        fold.add(entry)
        teller.story()
    assert teller.story() == told(driven)


def test_a_group_whose_stored_state_was_dropped_has_no_members() -> None:
    driven = Driven()
    driven.join_with_members(2)
    newest = driven.journal[-1]
    dropped = QuarantinedStateDropped("cannot be read", 100, "dropped by hand")
    end = msgspec.structs.replace(newest, sequence=newest.sequence + 1, record=dropped)
    story = observed(StoryTeller(driven.group_id), [*driven.journal, end]).story()
    assert (story.now.state, story.now.members) == ("Dead", [])
    assert story.rebalances[-1].is_interrupted


def test_partitions_that_are_assigned_for_the_first_time_are_counted_beside_those_that_moved() -> None:
    driven = Driven()
    members = assigned(driven, driven.join_with_members(2), {0: (0,), 1: (1, 3)})
    rejoined = [joined(one) for one in [driven.rejoin(member) for member in members]]
    assigned(driven, rejoined, {0: (0, 2), 1: (1,)})
    assert "  0 of 3 partitions moved, 1 newly assigned, 1 no longer assigned" in [*lines_of(told(driven))]
