"""The consumers of a group over time: they pause, leave and die, and others come in their place."""

from collections.abc import Callable, Sequence
from functools import partial

from tests.recovery.recorded.consumer import RecordedConsumer
from tests.recovery.recorded.surroundings import GroupPlan, Network

PAUSES_MS = (1_000, 3_000, 9_000)


class Population:
    """The consumers of one group; nothing disturbs them before :meth:`disturb`, and from ``is_calm`` on.

    clients: how many there are at the start, of which ``static_clients`` have an instance id. disturbance_ms: about how
    long it takes from one disturbance to the next; the first one comes a little sooner.
    """

    def __init__(
        self,
        network: Network,
        plan: GroupPlan,
        clients: int,
        static_clients: int,
        is_calm: Callable[[], bool],
        *,
        disturbance_ms: int = 5_000,
        pauses_ms: Sequence[int] = PAUSES_MS,
    ) -> None:
        self._world = network.world
        self._network = network
        self._plan = plan
        self._is_calm = is_calm
        self._disturbance_ms = disturbance_ms
        self._pauses_ms = pauses_ms
        self._started = 0
        self._awaited = 0
        self._clients: list[RecordedConsumer] = []
        for index in range(clients):
            self._add(f"instance-{index}" if index < static_clients else None)

    def disturb(self) -> None:
        """Let consumers pause, leave and die from now on."""
        self._world.after(self._world.about(self._disturbance_ms * 4 // 5), self._disturb)

    @property
    def is_settled(self) -> bool:
        """Whether every consumer is assigned, and none is awaited."""
        return not self._awaited and all(client.is_settled for client in self._clients if not client.is_dead)

    def has_been_accepted_since(self, ms: int) -> bool:
        """Whether each live consumer has sent a heartbeat since this time of the world that was accepted."""
        return all(client.has_been_accepted_since(ms) for client in self._clients if not client.is_dead)

    def describe(self) -> str:
        """The consumers that are not settled."""
        unsettled = [client.name for client in self._clients if not client.is_settled and not client.is_dead]
        return f"{self._plan.group}: {', '.join(unsettled)} not settled, {self._awaited} awaited"

    def stop(self) -> None:
        """Let every consumer do nothing any more."""
        for client in self._clients:
            client.kill()

    def _add(self, instance: str | None) -> None:
        name = f"{self._plan.group}/client-{self._started}"
        self._clients.append(RecordedConsumer(self._network, self._plan, name, instance))
        self._started += 1

    def _come(self, instance: str | None) -> None:
        self._awaited -= 1
        self._add(instance)

    def _disturb(self) -> None:
        world = self._world
        if self._is_calm():
            return
        world.after(world.about(self._disturbance_ms), self._disturb)
        client = world.chance.choice([client for client in self._clients if not client.is_dead])
        what = world.chance.choice(("kill", "leave", "pause", "pause"))
        if what == "pause":
            client.pause(world.chance.choice(self._pauses_ms))
            return
        client.kill() if what == "kill" or client.instance is not None else client.leave()
        self._clients.remove(client)
        self._awaited += 1
        world.after(world.about(self._disturbance_ms * 6 // 5), partial(self._come, client.instance))
        if not self._clients:
            self._add(None)
