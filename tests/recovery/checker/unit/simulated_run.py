"""Whole runs: clients that come, pause, leave and die, somebody who reads all offsets, and somebody who resets them."""

from collections.abc import Iterable, Mapping, Sequence

from tests.recovery.checker.checks import check
from tests.recovery.checker.history import Run
from tests.recovery.checker.operations import Rule, Violation
from tests.recovery.checker.unit.simulated_coordinator import Defects
from tests.recovery.checker.unit.simulated_network import Network
from tests.recovery.checker.unit.simulation import Plan, Protocol, World
from tests.recovery.recorded.consumer import RecordedConsumer
from tests.recovery.recorded.member import RecordedMember
from tests.recovery.recorded.population import Population
from tests.recovery.recorded.reconciling_consumer import ReconcilingConsumer
from tests.recovery.recorded.surroundings import GroupPlan
from tests.recovery.recorded.visitors import Administrator, Observer

GROUP = "billing"

STABLE_WITHIN_MS = 25_000
"""A session, two rebalances, and an answer that comes late; an outage is a fault and counts from its end."""

KINDS: Mapping[Protocol, Sequence[type[RecordedMember]]] = {
    Protocol.CLASSIC: (RecordedConsumer,),
    Protocol.NEWER: (ReconcilingConsumer,),
    Protocol.MIXED: (RecordedConsumer, ReconcilingConsumer),
}


def simulate(plan: Plan, defects: Defects | None = None) -> Run:
    """Play a run; with a coordinator without defects, the checker must accept it."""
    world = World(plan)
    network = Network(world, defects)
    group = GroupPlan(
        GROUP,
        "orders",
        plan.partitions,
        # As in Kafka, a group that is upgraded knows only what was assigned. So it may give away a partition that a
        # cooperative member has yet to give up; an eager member has none of those.
        is_cooperative=plan.is_cooperative and plan.protocol is not Protocol.MIXED,
        rebalance_ms=plan.rebalance_ms,
        has_unique_metadata=plan.has_unique_metadata,
    )
    # In the last third nothing is disturbed any more.
    Population(
        network,
        group,
        plan.clients,
        plan.static_clients,
        lambda: world.now > plan.length_ms * 2 // 3,
        kinds=KINDS[plan.protocol],
    ).disturb()
    Observer(network, group)
    Administrator(network, group)
    world.run()
    world.recorder.end(network.coordinator.journal, {GROUP: network.coordinator.groups.get(GROUP)})
    return world.history()


def judged(run: Run) -> list[Violation]:
    """What is wrong with a run."""
    return check(run.events, run.journal, run.states, stable_within_ms=STABLE_WITHIN_MS)


def assert_defects_found(defects: Defects, rules: set[Rule], plans: Iterable[Plan]) -> None:
    """Play runs of a broken coordinator until they have violated all the rules."""
    found: set[Rule] = set()
    for plan in plans:
        found |= {violation.rule for violation in judged(simulate(plan, defects))}
        if rules <= found:
            return
    assert rules <= found
