"""Plans: what a seed gives, and what fits together."""

import msgspec
import pytest

from streaming.job.options import load_options
from tests.recovery.chaos.faults.catalogue import FAULTS, unexpected_ends
from tests.recovery.chaos.needs import NOT_ON_A_CLUSTER, Need, fit_together
from tests.recovery.chaos.plan import LONG_REBALANCE_MS, MOST_FAULTS, REBALANCE_MS, Plan, faults_of, make_plan
from tests.recovery.chaos.stage import JOB
from tests.recovery.recorded.surroundings import GroupPlan

SEEDS = range(300)


def test_a_seed_gives_the_same_plan_again() -> None:
    assert [make_plan(seed) for seed in SEEDS] == [make_plan(seed) for seed in SEEDS]


def test_consecutive_seeds_begin_with_every_fault_in_turn() -> None:
    begins = [make_plan(seed).faults[0].name for seed in range(len(FAULTS))]
    assert set(begins) == {*FAULTS} - {"kill-worker"}
    on_cluster = faults_of(on_cluster=True)
    assert [make_plan(seed, on_cluster=True).faults[0].name for seed in range(len(on_cluster))] == on_cluster


def test_a_campaign_on_a_cluster_has_workers_and_executors_and_nothing_of_a_local_disk() -> None:
    needs = frozenset.union(*(make_plan(seed, on_cluster=True).needs for seed in SEEDS))
    assert needs == {*Need} - NOT_ON_A_CLUSTER - {Need.ONE_JOB}
    pairs = [{fault.name for fault in make_plan(seed, on_cluster=True).faults} for seed in SEEDS]
    assert any({"kill-executor", "stop-active"} <= pair for pair in pairs), "a standby beside executors"


def test_what_a_run_needs_fits_together() -> None:
    for seed in SEEDS:
        plan = make_plan(seed)
        assert fit_together(plan.needs), plan.describe()
        names = [fault.name for fault in plan.faults]
        assert 1 <= len(names) <= MOST_FAULTS
        assert len(names) == 1 or not any(FAULTS[name].is_alone for name in names), plan.describe()


def test_there_are_runs_of_every_kind() -> None:
    plans = [make_plan(seed, has_consumer_members=True) for seed in SEEDS]
    assert {len(plan.faults) for plan in plans} == {1, 2, 3}
    assert {plan.transactional_members for plan in plans} == {0, 1, 2}
    assert {(plan.state_store, plan.state_partitions) for plan in plans} == {
        (store, partitions) for store in ("memory", "rocksdb") for partitions in (1, 2)
    }
    for name in ("eager", "cooperative", "consumer"):
        of_kind = [group for plan in plans for group in plan.groups if group.name == name]
        assert len(of_kind) == len(plans)
        assert any(group.static_members == 0 for group in of_kind)
        assert any(group.static_members == group.members for group in of_kind)
    assert frozenset.union(*(plan.needs for plan in plans)) == {*Need} - {Need.WORKERS}


def test_where_a_gateway_is_broken_a_client_is_behind_it() -> None:
    plans = [plan for plan in map(make_plan, SEEDS) if any("gateway" in fault.name for fault in plan.faults)]
    assert plans
    assert min(plan.transactional_members for plan in plans) == 1


def test_every_run_has_a_group_in_which_no_rebalance_explains_an_expulsion() -> None:
    for seed in SEEDS:
        classic = [group for group in make_plan(seed).groups if not group.is_reconciling]
        assert sorted(group.rebalance_ms for group in classic) == [REBALANCE_MS, LONG_REBALANCE_MS]


def test_every_run_has_a_group_of_the_consumer_group_protocol_with_short_or_long_revocations() -> None:
    plans = [make_plan(seed, has_consumer_members=True) for seed in SEEDS]
    groups = [group for plan in plans for group in plan.groups if group.is_reconciling]
    assert [group.name for group in groups] == ["consumer"] * len(SEEDS)
    assert {group.rebalance_ms for group in groups} == {REBALANCE_MS, LONG_REBALANCE_MS}


def test_the_job_gives_members_of_the_consumer_group_protocol_the_session_that_the_checker_expects() -> None:
    options = load_options({**JOB, "bootstrap-servers": "unused:9092", "checkpoint": "unused"}, {})
    plan = GroupPlan("consumer", "orders", 3)
    config = options.protocol
    assert config.group_consumer_session_timeout_ms == plan.session_ms
    assert config.group_consumer_heartbeat_interval_ms == plan.heartbeat_ms


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_can_be_injected_alone(name: str) -> None:
    (fault,) = make_plan(7, name).faults
    assert fault.name == name


def test_an_end_of_the_job_that_no_fault_explains_is_unexpected() -> None:
    clock = "this host's clock has gone back by 60 s: start the job again"
    start = "checkpoint /tmp/checkpoint is in use by process 7 (group-coordinator run)"
    failed = "the query failed: KeyError"
    ends = [clock, start, failed]
    assert unexpected_ends(["kill-driver"], ends) == [clock, failed]
    assert unexpected_ends(["kill-driver", "step-job-clock"], ends) == [failed]
    assert unexpected_ends(["fill-disk"], ends) == []
    no_broker = ["Kafka at 127.0.0.1:9092: timed out", "the active job cannot be announced: timed out"]
    assert unexpected_ends(["stop-broker"], no_broker) == []
    assert unexpected_ends(["kill-gateway"], no_broker) == no_broker


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(KeyError):
        make_plan(7, "no-such-fault")


def test_a_plan_is_kept_as_json() -> None:
    plan = make_plan(11)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
