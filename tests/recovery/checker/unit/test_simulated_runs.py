"""Simulated runs: the checker accepts every run of a correct coordinator, and finds what is broken or planted."""

from functools import cache

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from tests.recovery.checker.history import Run
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit import planted
from tests.recovery.checker.unit.simulated_coordinator import Defects
from tests.recovery.checker.unit.simulated_run import assert_defects_found, judged, simulate
from tests.recovery.checker.unit.simulation import Plan, Protocol

PLANS = st.builds(
    Plan,
    seed=st.integers(0, 2**32 - 1),
    protocol=st.sampled_from(Protocol),
    clients=st.integers(1, 5),
    partitions=st.integers(1, 8),
    is_cooperative=st.booleans(),
    static_clients=st.integers(0, 2),
    rebalance_ms=st.sampled_from([5_000, 20_000]),
    length_ms=st.sampled_from([30_000, 60_000]),
    lost_answers=st.sampled_from([0.0, 0.05, 0.2]),
    outages=st.integers(0, 4),
    has_unique_metadata=st.booleans(),
)


@cache
def correct_run(seed: int) -> Run:
    """A run of a correct coordinator whose last 40 s are quiet."""
    return simulate(Plan(seed, clients=2 + seed % 3, is_cooperative=seed % 2 == 0, length_ms=120_000))


@given(PLANS)
@settings(max_examples=60, derandomize=True, deadline=None, phases=[Phase.generate])
def test_every_run_of_a_correct_coordinator_is_accepted(plan: Plan) -> None:
    run = simulate(plan)
    assert judged(run) == []
    for kind in {f"{e.f} {e.kind}" for e in run.events}:
        event(kind)


@pytest.mark.parametrize(
    ("plant", "rules"),
    [
        (planted.lost_commit, {Rule.LINEARIZABLE_OFFSETS}),
        (planted.invented_offset, {Rule.READS_WHAT_WAS_COMMITTED}),
        (planted.swapped_assignments, {Rule.JOURNAL_AND_ANSWERS}),
        (planted.second_owner, {Rule.ONE_OWNER, Rule.JOURNAL_AND_ANSWERS}),
        (planted.forked_generation, {Rule.ONE_GENERATION}),
        (planted.generation_that_goes_back, {Rule.GENERATIONS_GO_AHEAD}),
        (planted.expelled_member, {Rule.LIVE_MEMBERS_STAY}),
        (planted.changed_answer, {Rule.SAME_ANSWER}),
        (planted.hole_in_the_journal, {Rule.UNBROKEN_JOURNAL}),
        (planted.forked_journal, {Rule.UNBROKEN_JOURNAL}),
        (planted.other_state, {Rule.JOURNAL_IS_STATE}),
        (planted.unrecorded_commit, {Rule.JOURNAL_AND_ANSWERS}),
        (planted.endless_rebalance, {Rule.STABLE_AGAIN}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_planted_fault_is_found(plant: planted.Plant, rules: set[Rule]) -> None:
    planted.assert_found(plant, rules, [correct_run(seed) for seed in range(8)], judged)


@pytest.mark.parametrize(
    ("defects", "rules"),
    [
        (Defects(loses_batches=True), {Rule.LINEARIZABLE_OFFSETS, Rule.OFFSETS_GO_AHEAD, Rule.FENCED_COMMITS}),
        (Defects(loses_batches=True), {Rule.UNBROKEN_JOURNAL, Rule.JOURNAL_IS_STATE, Rule.JOURNAL_AND_ANSWERS}),
        (Defects(loses_batches=True), {Rule.SAME_ANSWER, Rule.ONE_GENERATION, Rule.GENERATIONS_GO_AHEAD}),
        (Defects(expels_before_it_reads=True), {Rule.LIVE_MEMBERS_STAY}),
        (Defects(numbers_requests_again=True), {Rule.UNBROKEN_JOURNAL}),
        (Defects(accepts_old_generations=True), {Rule.JOURNAL_AND_ANSWERS}),
    ],
    ids=["offsets", "journal", "answers", "sessions", "places", "fencing"],
)
def test_a_broken_coordinator_is_found(defects: Defects, rules: set[Rule]) -> None:
    plans = (Plan(seed, clients=2 + seed % 4, is_cooperative=seed // 5 % 2 == 1, outages=3) for seed in range(40))
    assert_defects_found(defects, rules, plans)
