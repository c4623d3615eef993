"""The fleet's rows of consumer groups (KIP-848), which record no transitions."""

import pytest

from coordinator_logic.records import JournalEntry, directory_entry
from streaming.explain.live.fleet import Fleet, FleetRow
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers
from tests.logic.groups.consumer.test_migration import Classic, classic_group

MINUTE = 60_000

CAUSE_OF_A_LEAVE = "perhaps: member left or poll interval exceeded; b: its client gave no reason"


def row(group: DrivenConsumers, journal: list[JournalEntry] | None = None) -> FleetRow:
    """The row of a group now."""
    fleet = Fleet()
    for entry in group.journal if journal is None else journal:
        fleet.note(entry)
    return fleet.rows([directory_entry(group.group)], group.now, {})[0]


def converged(group: DrivenConsumers, *consumers: Consumer) -> None:
    """Let members reach the target, a second for each round of heartbeats."""
    for _ in range(4):
        group.sleep(1_000)
        group.converge(*consumers, rounds=1)


def two_members() -> tuple[DrivenConsumers, Consumer, Consumer]:
    """A group of two, which has been Stable for a minute."""
    group = DrivenConsumers(group_consumer_session_timeout_ms=10 * MINUTE)
    a = Consumer(group, "a").join("t", topics={"t": 4})
    converged(group, a)
    group.sleep(2 * MINUTE)
    b = Consumer(group, "b").join("t")
    converged(group, a, b)
    group.sleep(MINUTE)
    return group, a, b


def test_a_row_has_the_type_the_epoch_and_the_last_reason() -> None:
    group, _, _ = two_members()
    found = row(group)
    assert (found.state, found.group_type, found.generation, found.members) == ("Stable", "consumer", 3, 2)
    assert (found.rebalances, found.reason) == (2, "b: joined")


def test_a_rebalance_lasts_from_the_new_epoch_to_the_last_step_of_a_member() -> None:
    group, _, _ = two_members()
    steps = [entry for entry in group.journal if type(entry.record).__name__ == "MemberAssignmentChanged"]
    begun = [entry for entry in group.journal if type(entry.record).__name__ == "GroupEpochBumped"]
    found = row(group)
    assert found.since == steps[-1].timestamp
    assert found.rebalancing_share == (steps[-1].timestamp - begun[-1].timestamp) / (10 * MINUTE)


@pytest.mark.parametrize(("beats", "epoch"), [("a", 4), ("b", 3)], ids=["one has arrived", "one must revoke"])
def test_a_rebalance_that_goes_on_counts_until_now(beats: str, epoch: int) -> None:
    group, a, b = two_members()
    settled, began = row(group).rebalancing_share, group.now
    Consumer(group, "c").join("t")
    {"a": a, "b": b}[beats].beat()
    group.sleep(6_000)
    found = row(group)
    assert (found.state, found.rebalances, found.since) == ("Reconciling", 3, began)
    assert round(found.rebalancing_share - settled, 6) == 0.01
    assert group.consumer.members[beats].epoch == epoch


def test_a_group_whose_last_member_has_left_is_empty_and_does_not_rebalance() -> None:
    group, a, b = two_members()
    a.leave()
    b.leave()
    group.sleep(3 * MINUTE)
    found = row(group)
    assert (found.state, found.since) == ("Empty", group.now - 3 * MINUTE)
    assert found.rebalancing_share < 0.02
    Consumer(group, "c").join("t")
    group.sleep(MINUTE)
    assert row(group).since == group.now - MINUTE


def test_members_that_joined_before_the_window_are_no_empty_group() -> None:
    group, a, b = two_members()
    known = len(group.journal)
    b.leave()
    converged(group, a)
    found = row(group, group.journal[known:])
    assert (found.state, found.rebalances, found.reason) == ("Stable", 1, CAUSE_OF_A_LEAVE)
    assert found.rebalancing_share > 0


def test_an_instance_that_is_away_lets_the_group_reconcile_until_it_returns() -> None:
    group = DrivenConsumers()
    a = Consumer(group, "a", instance="i").join("t", topics={"t": 2})
    group.sleep(1_000)
    a.leave()
    group.sleep(30_000)
    assert (row(group).state, row(group).since) == ("Reconciling", group.now - 30_000)
    Consumer(group, "a2", instance="i").join("t")
    assert (row(group).state, row(group).since, row(group).rebalances) == ("Stable", group.now, 1)


def test_a_group_that_becomes_a_consumer_group_rebalances_once_for_the_new_member() -> None:
    group = DrivenConsumers()
    members: list[Classic] = classic_group(group, {0: (0, 1), 1: (2, 3)})
    before = row(group).rebalances
    Consumer(group, "newer").join("t", topics={"t": 4})
    found = row(group)
    assert (found.group_type, found.rebalances) == ("consumer", before + 1)
    assert len(members) == 2
