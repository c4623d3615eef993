"""The consumers of a group over time: they pause, leave and die, and others come in their place."""

from collections.abc import Callable, Sequence
from functools import partial

from tests.recovery.recorded.consumer import RecordedConsumer
from tests.recovery.recorded.member import RecordedMember
from tests.recovery.recorded.surroundings import GroupPlan, Network

PAUSES_MS = (1_000, 3_000, 9_000)


class Population:
    """The consumers of one group; nothing disturbs them before :meth:`disturb`, and from ``is_calm`` on.

    clients: how many there are at the start, of which ``static_clients`` have an instance id. disturbance_ms: about how
    long it takes from one disturbance to the next; the first one comes a little sooner. kinds: the classes of members;
    each new one is of any of them, so with several a group changes its protocol. has_all_partitions: whether they are
    settled only when they have every partition of the topic: members of consumer groups do not wait for each other.
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
        kinds: Sequence[type[RecordedMember]] = (RecordedConsumer,),
        has_all_partitions: bool = False,
    ) -> None:
        self._world = network.world
        self._network = network
        self._plan = plan
        self._is_calm = is_calm
        self._disturbance_ms = disturbance_ms
        self._pauses_ms = pauses_ms
        self._kinds = kinds
        self._has_all_partitions = has_all_partitions
        self._started = 0
        self._awaited = 0
        self._clients: list[RecordedMember] = []
        for index in range(clients):
            self._add(f"instance-{index}" if index < static_clients else None)

    def disturb(self) -> None:
        """Let consumers pause, leave and die from now on."""
        self._world.after(self._world.about(self._disturbance_ms * 4 // 5), self._disturb)

    @property
    def is_settled(self) -> bool:
        """Whether every consumer is assigned, and none is awaited."""
        live = [client for client in self._clients if not client.is_dead]
        return not self._awaited and all(client.is_settled for client in live) and not self._unowned(live)

    def _unowned(self, live: Sequence[RecordedMember]) -> set[int]:
        """The partitions that nobody has, if it matters."""
        wanted = set(range(self._plan.partitions)) if self._has_all_partitions else set[int]()
        return wanted.difference(*(client.owned for client in live))

    def has_been_accepted_since(self, ms: int) -> bool:
        """Whether each live consumer has sent a heartbeat since this time of the world that was accepted."""
        return all(client.has_been_accepted_since(ms) for client in self._clients if not client.is_dead)

    def describe(self) -> str:
        """The consumers that are not settled."""
        live = [client for client in self._clients if not client.is_dead]
        unsettled = [client.name for client in live if not client.is_settled]
        unowned = f", {sorted(self._unowned(live))} not owned" if self._has_all_partitions else ""
        return f"{self._plan.group}: {', '.join(unsettled)} not settled, {self._awaited} awaited{unowned}"

    def stop(self) -> None:
        """Let every consumer do nothing any more."""
        for client in self._clients:
            client.kill()

    def _add(self, instance: str | None) -> None:
        name = f"{self._plan.group}/client-{self._started}"
        kind = self._kinds[0] if len(self._kinds) == 1 else self._world.chance.choice(self._kinds)
        self._clients.append(kind(self._network, self._plan, name, instance))
        self._started += 1

    def _come(self, instance: str | None) -> None:
        self._awaited -= 1
        self._add(instance)

    def _disturb(self) -> None:
        world = self._world
        if self._is_calm():
            return
        world.after(world.about(self._disturbance_ms), self._disturb)
        live = [client for client in self._clients if not client.is_dead]
        if not live:
            # Each was fenced by one that has taken its instance id, and has gone since.
            return
        client = world.chance.choice(live)
        what = world.chance.choice(("kill", "leave", "pause", "pause"))
        if what == "pause":
            client.pause(world.chance.choice(self._pauses_ms))
            return
        client.kill() if what == "kill" or not client.leaves_when_it_ends else client.leave()
        self._clients.remove(client)
        self._awaited += 1
        world.after(world.about(self._disturbance_ms * 6 // 5), partial(self._come, client.instance))
        if not self._clients:
            self._add(None)
