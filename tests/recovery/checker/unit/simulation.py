"""A run in virtual time: clients and a coordinator over a network that is slow, loses answers and repeats them."""

import heapq
from collections.abc import Callable
from enum import Enum
from io import BytesIO
from random import Random
from typing import NamedTuple

import msgspec

from tests.recovery.checker.history import Function, Recorder, Run, read
from tests.recovery.checker.operations import NS_PER_MS

EPOCH_MS = 1_700_000_000_000


class Protocol(Enum):
    """What the members of a group speak."""

    CLASSIC = "classic"
    NEWER = "newer"
    MIXED = "mixed"


class Plan(NamedTuple):
    """What happens in a run; times in ms of virtual time."""

    seed: int
    protocol: Protocol = Protocol.CLASSIC
    clients: int = 4
    partitions: int = 6
    is_cooperative: bool = False
    static_clients: int = 0
    rebalance_ms: int = 20_000
    length_ms: int = 60_000
    lost_answers: float = 0.05
    outages: int = 2
    has_unique_metadata: bool = True


class World:
    """The clock, the future, and the history of a run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = Random(plan.seed)
        self.now = 0
        self.file = BytesIO()
        self.recorder = Recorder(self.file, self._monotonic_ns, lambda: (EPOCH_MS + self.now) * NS_PER_MS)
        self._future: list[tuple[int, int, Callable[[], None]]] = []
        self._counter = 0

    @property
    def epoch_ms(self) -> int:
        """The time by the broker's and the driver's clock."""
        return EPOCH_MS + self.now

    def _monotonic_ns(self) -> int:
        # Two lines never have the same time.
        self._counter += 1
        return self.now * NS_PER_MS + self._counter

    def after(self, ms: int, do: Callable[[], None]) -> None:
        """Do something later."""
        self._counter += 1
        heapq.heappush(self._future, (self.now + ms, self._counter, do))

    def about(self, ms: int) -> int:
        """A time around this one."""
        return self.chance.randint(ms // 2, ms * 3 // 2)

    def fault(self, note: str) -> None:
        """Record a fault."""
        self.recorder.note("nemesis", Function.FAULT, "", note=note)

    def run(self) -> None:
        """Let all things happen until the end."""
        while self._future and self._future[0][0] <= self.plan.length_ms:
            self.now, _, do = heapq.heappop(self._future)
            do()
        self.now = self.plan.length_ms

    def history(self) -> Run:
        """The run, read back from its file."""
        return read(self.file.getvalue().splitlines(keepends=True))


def encoded(value: object) -> bytes:
    """The bytes of a message."""
    return msgspec.json.encode(value)
