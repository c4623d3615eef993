"""Whole runs: clients that come, pause, leave and die, somebody who reads all offsets, and somebody who resets them."""

from functools import partial

from tests.recovery.checker.history import Run
from tests.recovery.checker.unit.simulated_coordinator import Defects
from tests.recovery.checker.unit.simulated_network import Network
from tests.recovery.checker.unit.simulation import Plan, World
from tests.recovery.recorded.consumer import RecordedConsumer
from tests.recovery.recorded.surroundings import GroupPlan
from tests.recovery.recorded.visitors import Administrator, Observer

GROUP = "billing"

STABLE_WITHIN_MS = 25_000
"""A session, two rebalances, and an answer that comes late; an outage is a fault and counts from its end."""


def simulate(plan: Plan, defects: Defects | None = None) -> Run:
    """Play a run; with a coordinator without defects, the checker must accept it."""
    world = World(plan)
    network = Network(world, defects)
    group = GroupPlan(
        GROUP,
        "orders",
        plan.partitions,
        is_cooperative=plan.is_cooperative,
        rebalance_ms=plan.rebalance_ms,
        has_unique_metadata=plan.has_unique_metadata,
    )
    _Population(world, network, group)
    Observer(network, group)
    Administrator(network, group)
    world.run()
    world.recorder.end(network.coordinator.journal, {GROUP: network.coordinator.groups.get(GROUP)})
    return world.history()


class _Population:
    """The clients of a run. In its last third nothing is disturbed any more."""

    def __init__(self, world: World, network: Network, group: GroupPlan) -> None:
        self._world = world
        self._group = group
        self._network = network
        self._started = 0
        self._clients: list[RecordedConsumer] = []
        for index in range(world.plan.clients):
            self._add(f"instance-{index}" if index < world.plan.static_clients else None)
        world.after(world.about(4_000), self._disturb)

    def _add(self, instance: str | None) -> None:
        self._clients.append(RecordedConsumer(self._network, self._group, f"client-{self._started}", instance))
        self._started += 1

    def _disturb(self) -> None:
        world = self._world
        if world.now > world.plan.length_ms * 2 // 3:
            return
        world.after(world.about(5_000), self._disturb)
        client = world.chance.choice([client for client in self._clients if not client.is_dead])
        what = world.chance.choice(("kill", "leave", "pause", "pause"))
        if what == "pause":
            client.pause(world.chance.choice((1_000, 3_000, 9_000)))
            return
        client.kill() if what == "kill" or client.instance is not None else client.leave()
        self._clients.remove(client)
        world.after(world.about(6_000), partial(self._add, client.instance))
        if not self._clients:
            self._add(None)
