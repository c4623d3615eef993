"""The rebalances of all groups, each told once and when it has ended."""

from itertools import zip_longest

from coordinator_logic.records import JournalEntry
from streaming.explain.story.of_all_groups import GroupRebalance, RebalancesOfAllGroups
from streaming.explain.story.words import event_line
from tests.explain.story.test_story import leaving, told
from tests.logic.driver import SESSION_MS, Driven, joined
from tests.support.parts import classic


def rebalanced_group(group_id: str) -> Driven:
    """A group with three rebalances, of which the last one goes on."""
    driven = Driven(group_id=group_id)
    first, second = driven.stable_group(2)
    driven.sleep_with_heartbeats(SESSION_MS + 1, first)
    driven.sync_all([joined(driven.rejoin(first))])
    assert second.member_id not in classic(driven.group).members
    driven.join_new("newcomer")
    return driven


def told_of_all(entries: list[JournalEntry]) -> list[GroupRebalance]:
    rebalances = RebalancesOfAllGroups()
    return [one for entry in entries for one in rebalances.add(entry)]


def test_each_rebalance_of_each_group_is_told_when_it_has_ended() -> None:
    groups = [rebalanced_group("a"), rebalanced_group("b")]
    mixed = [entry for pair in zip_longest(*(group.journal for group in groups)) for entry in pair if entry is not None]
    found = told_of_all(mixed)
    for group in groups:
        of_group = [one.rebalance for one in found if one.group_id == group.group_id]
        assert of_group == told(group).rebalances[:-1]
        assert len(of_group) == 2


def test_entries_that_repeat_tell_nothing_again() -> None:
    driven = Driven(group_id="a")
    driven.empty_group()
    driven.delete()
    assert len(told_of_all(driven.journal)) == 2
    for journal in (driven.journal, rebalanced_group("a").journal):
        assert told_of_all([*journal, *journal]) == told_of_all(journal)


def test_a_line_has_the_group_the_cause_and_its_doubt() -> None:
    driven = Driven(group_id="billing")
    first, second = driven.stable_group(2)
    driven.send("LeaveGroup", leaving(second, group_id="billing"), version=5, client="client-1")
    driven.sync_all([joined(driven.rejoin(first))])
    line = event_line(*told_of_all(driven.journal)[-1])
    assert "  billing  member left -> generation 2  " in line
    assert "perhaps: member left or poll interval exceeded" in line
    assert second.member_id in line
