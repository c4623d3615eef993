"""How long groups have been rebalancing, as the metrics see it."""

from prometheus_client import CollectorRegistry, generate_latest

from coordinator_logic.records import GroupDirectoryEntry
from coordinator_logic.states import State
from streaming.job.monitoring.group_gauges import NAMED_AFTER_SECONDS, GroupGauges, RebalanceTimes
from tests.contract.output.hostile_texts import HOSTILE, unprintable
from tests.support.virtual_time import Clock


def entry(state: State, generation: int, group_id: str = "billing") -> GroupDirectoryEntry:
    return GroupDirectoryEntry(group_id, state.value, "classic", "consumer", generation, members=2)


def test_a_rebalance_counts_from_when_it_is_seen_through_both_of_its_states() -> None:
    clock = Clock()
    times = RebalanceTimes(clock)
    assert times.seconds([entry(State.PREPARING_REBALANCE, 4)]) == {"billing": 0}
    clock.now += 20
    assert times.seconds([entry(State.COMPLETING_REBALANCE, 5)]) == {"billing": 20}


def test_a_stable_group_does_not_rebalance_and_its_next_rebalance_counts_from_zero() -> None:
    clock = Clock()
    times = RebalanceTimes(clock)
    times.seconds([entry(State.PREPARING_REBALANCE, 4)])
    clock.now += 20
    assert times.seconds([entry(State.STABLE, 5)]) == {}
    assert times.seconds([entry(State.PREPARING_REBALANCE, 5)]) == {"billing": 0}


def test_a_rebalance_that_ended_unseen_does_not_count_for_the_next() -> None:
    clock = Clock()
    times = RebalanceTimes(clock)
    times.seconds([entry(State.PREPARING_REBALANCE, 4)])
    clock.now += 20
    assert times.seconds([entry(State.PREPARING_REBALANCE, 5)]) == {"billing": 0}


def test_a_groups_id_is_a_label_without_control_characters() -> None:
    registry, clock = CollectorRegistry(), Clock()
    gauges = GroupGauges(registry, clock)
    gauges.entries = lambda: [entry(State.PREPARING_REBALANCE, 3, HOSTILE)]
    generate_latest(registry)
    clock.now += NAMED_AFTER_SECONDS
    exposed = generate_latest(registry).decode()
    assert "boom" in exposed
    assert unprintable(exposed) == []
