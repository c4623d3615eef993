"""Whole runs: clients that come, pause, leave and die, somebody who reads all offsets, and somebody who resets them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.events import Response
from coordinator_logic.messages import NO_GENERATION
from tests.recovery.checker.history import Function, Position, Run
from tests.recovery.checker.unit.simulated_client import (
    REQUEST_TIMEOUT_MS,
    TOPIC,
    OnAnswer,
    SimulatedClient,
    commit,
    fetch,
)
from tests.recovery.checker.unit.simulated_coordinator import Defects
from tests.recovery.checker.unit.simulated_network import GROUP, Network
from tests.recovery.checker.unit.simulation import Plan, World

STABLE_WITHIN_MS = 25_000
"""A session, two rebalances, and an answer that comes late; an outage is a fault and counts from its end."""


def simulate(plan: Plan, defects: Defects | None = None) -> Run:
    """Play a run; with a coordinator without defects, the checker must accept it."""
    world = World(plan)
    network = Network(world, defects)
    _Population(world, network)
    _Observer(world, network)
    _Administrator(world, network)
    world.run()
    world.recorder.end(network.coordinator.journal, {GROUP: network.coordinator.groups.get(GROUP)})
    return world.history()


class _Population:
    """The clients of a run. In its last third nothing is disturbed any more."""

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        self._network = network
        self._started = 0
        self._clients: list[SimulatedClient] = []
        for index in range(world.plan.clients):
            self._add(f"instance-{index}" if index < world.plan.static_clients else None)
        world.after(world.about(4_000), self._disturb)

    def _add(self, instance: str | None) -> None:
        self._clients.append(SimulatedClient(self._network, f"client-{self._started}", instance))
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


class _Visitor:
    """Sends requests without being a member."""

    name = "visitor"

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        self._network = network
        self._visit()

    def _visit(self) -> None:
        raise NotImplementedError

    def _send(self, f: Function, body: Any, on_answer: OnAnswer, *, version: int | None = None, **details: Any) -> None:
        call = self._network.send(self.name, f, body, REQUEST_TIMEOUT_MS, details, version)

        def answered(response: Response, answer: str) -> None:
            if response.error_code == Error.NONE:
                on_answer(response.body, partial(call.operation.ok, answer=answer))
            else:
                call.operation.fail(response.error_code, answer=answer)

        call.answered = answered
        call.gave_up = call.operation.info

    def _again(self, ms: int, visit: Callable[[], None]) -> None:
        self._world.after(self._world.about(ms), visit)


class _Observer(_Visitor):
    name = "observer"

    def _visit(self) -> None:
        self._again(700, self._visit)
        fetch(self._send, set(range(self._world.plan.partitions)), lambda positions: None)


class _Administrator(_Visitor):
    name = "administrator"

    def _visit(self) -> None:
        self._again(8_000, self._visit)
        chance, plan = self._world.chance, self._world.plan
        metadata = f"reset at {self._world.now}" if plan.has_unique_metadata else ""
        value = [Position(TOPIC, chance.randrange(plan.partitions), chance.randint(0, 9), metadata)]
        commit(self._send, value, NO_GENERATION, "", None, Function.RESET)
