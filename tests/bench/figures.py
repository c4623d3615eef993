"""What is measured: the plan that the load generator is given, and the figures that come back, as JSON."""

import statistics

import msgspec

from tests.bench.latency import Latency


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured. Every rate is one heartbeat a second of so many groups."""

    group_sizes: tuple[int, ...] = (1, 3, 10)
    groups_formed: int = 3
    rates: tuple[int, ...] = (10, 200)
    warm_up_seconds: float = 10.0
    measured_seconds: float = 30.0
    idle_seconds: float = 10.0


QUICK = Scale(group_sizes=(1, 3), groups_formed=1, warm_up_seconds=3.0, measured_seconds=6.0, idle_seconds=3.0)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the load generator is to do. ``driver_pid`` is the coordinator whose CPU time it reads."""

    bootstrap_servers: str
    topic_prefix: str
    driver_pid: int
    scale: Scale


class Progress(msgspec.Struct, frozen=True, tag=True):
    """What the load generator has begun to do."""

    doing: str


class Formation(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Time from the first JoinGroup of a new group until all its members have their assignment.

    ``above_delay_ms`` has one entry for each group, less ``delay_ms``, which the protocol has them wait.
    """

    members: int
    delay_ms: int
    above_delay_ms: list[float]

    @property
    def median_ms(self) -> float:
        """The one to compare by."""
        return statistics.median(self.above_delay_ms)


class Load(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Request to response at ``rate`` requests a second, and who used how many cores meanwhile.

    ``broker_round_trip`` is a record of the same size through the broker alone, produced and consumed by the same
    process in the same seconds: a request takes that way twice, so less than twice that is not to be had.
    ``sent_late`` is how much later than scheduled the generator sent; it is part of ``latency``. ``other_cores`` is
    the broker and whatever else runs on the machine: where they, the generator and the coordinator leave nothing
    idle, the figures are about the machine.
    """

    rate: int
    latency: Latency
    broker_round_trip: Latency
    sent_late: Latency
    failed: int
    generator_cores: float
    coordinator_cores: float
    other_cores: float


class Idle(msgspec.Struct, frozen=True, tag=True):
    """What the coordinator uses while its groups are alive and nobody says anything."""

    coordinator_cores: float


Event = Progress | Formation | Load | Idle


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Of some processes together. ``pss_mib`` counts a page that several processes share once."""

    processes: int
    rss_mib: float
    pss_mib: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured of one coordinator. ``memory`` is by role, taken after the loads."""

    start_seconds: float
    formations: list[Formation]
    loads: list[Load]
    idle: Idle
    memory: dict[str, Memory]

    def load(self, rate: int) -> Load:
        """The figures at one rate."""
        return next(load for load in self.loads if load.rate == rate)

    def formation(self, members: int) -> Formation:
        """The figures of one group size."""
        return next(formation for formation in self.formations if formation.members == members)


class LogicFigure(msgspec.Struct, frozen=True):
    """What the protocol costs by itself, without Spark; ``asked`` is the most it should be."""

    what: str
    value: float
    unit: str
    asked: float

    @property
    def reached(self) -> bool:
        """Whether it is as quick as was asked."""
        return self.value <= self.asked


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the benchmark; both coordinators before the same broker, one after the other."""

    date: str
    commit: str
    machine: dict[str, str]
    versions: dict[str, str]
    common: dict[str, str]
    scale: Scale
    logic: list[LogicFigure]
    shipped: Figures
    defaults: Figures
