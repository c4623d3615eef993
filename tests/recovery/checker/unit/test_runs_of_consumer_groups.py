"""Simulated runs of members of consumer groups, also beside classic ones: broken and planted faults are found."""

from functools import cache

import pytest

from tests.recovery.checker.history import Function, Run
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit import planted, planted_epochs
from tests.recovery.checker.unit.simulated_coordinator import Defects
from tests.recovery.checker.unit.simulated_run import assert_defects_found, judged, simulate
from tests.recovery.checker.unit.simulation import Plan, Protocol

SEEDS = 6
FORMED = {"ConsumerGroupFormed", "ClassicGroupFormed"}


@cache
def correct_run(seed: int) -> Run:
    """A run of a correct coordinator whose last 40 s are quiet."""
    return simulate(Plan(seed, Protocol.NEWER, clients=2 + seed % 3, static_clients=seed % 2, length_ms=120_000))


@pytest.mark.parametrize(
    ("plant", "rules"),
    [
        (planted_epochs.partition_of_another, {Rule.ONE_OWNER, Rule.JOURNAL_AND_ANSWERS}),
        (planted_epochs.smaller_assignment, {Rule.JOURNAL_AND_ANSWERS}),
        (planted_epochs.epoch_that_goes_back, {Rule.GENERATIONS_GO_AHEAD}),
        (planted_epochs.fenced_member, {Rule.LIVE_MEMBERS_STAY}),
        (planted_epochs.expelled_member, {Rule.LIVE_MEMBERS_STAY}),
        (planted_epochs.commit_of_an_old_epoch, {Rule.COMMITS_BY_EPOCH}),
        (planted_epochs.refused_commit, {Rule.COMMITS_BY_EPOCH}),
        (planted_epochs.group_epoch_that_goes_back, {Rule.GENERATIONS_GO_AHEAD}),
        (planted_epochs.second_holder, {Rule.ONE_OWNER}),
        (planted_epochs.endless_convergence, {Rule.STABLE_AGAIN}),
        (planted_epochs.endless_rejoining, {Rule.STABLE_AGAIN}),
        (planted.lost_commit, {Rule.LINEARIZABLE_OFFSETS}),
        (planted.invented_offset, {Rule.READS_WHAT_WAS_COMMITTED}),
        (planted.changed_answer, {Rule.SAME_ANSWER}),
        (planted.hole_in_the_journal, {Rule.UNBROKEN_JOURNAL}),
        (planted.forked_journal, {Rule.UNBROKEN_JOURNAL}),
        (planted.other_state, {Rule.JOURNAL_IS_STATE}),
        (planted.unrecorded_commit, {Rule.JOURNAL_AND_ANSWERS}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_planted_fault_is_found(plant: planted.Plant, rules: set[Rule]) -> None:
    planted.assert_found(plant, rules, [correct_run(seed) for seed in range(SEEDS)], judged)


@pytest.mark.parametrize(
    ("defects", "rules"),
    [
        (Defects(loses_batches=True), {Rule.LINEARIZABLE_OFFSETS, Rule.UNBROKEN_JOURNAL, Rule.JOURNAL_IS_STATE}),
        (Defects(expels_before_it_reads=True), {Rule.LIVE_MEMBERS_STAY}),
        (Defects(accepts_old_generations=True), {Rule.COMMITS_BY_EPOCH}),
        (Defects(believes_all_is_revoked=True), {Rule.ONE_OWNER}),
    ],
    ids=["state", "sessions", "commits", "revocations"],
)
@pytest.mark.parametrize("protocol", [Protocol.NEWER, Protocol.MIXED])
def test_a_broken_coordinator_is_found(protocol: Protocol, defects: Defects, rules: set[Rule]) -> None:
    plans = (Plan(seed, protocol, clients=2 + seed % 4, is_cooperative=True, outages=3) for seed in range(40))
    assert_defects_found(defects, rules, plans)


def test_members_of_both_protocols_take_each_others_places() -> None:
    """The runs show what they should: both kinds are assigned, leave and come back, static ones for a while too."""
    functions: set[Function] = set()
    epochs: set[int] = set()
    formed: set[str] = set()
    for seed in range(SEEDS):
        run = simulate(Plan(seed, Protocol.MIXED, static_clients=2))
        functions |= {event.f for event in run.events}
        epochs |= {event.generation for event in run.events if event.f is Function.CONSUMER_HEARTBEAT}
        formed |= {kind for kind in FORMED if any(kind.encode() in value for value in run.journal)}
    assert {Function.SYNC, Function.CONSUMER_HEARTBEAT, Function.LEAVE} <= functions
    assert {0, -1, -2} <= epochs
    assert formed == FORMED
