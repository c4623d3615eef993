"""What is measured, as JSON keeps it."""

import statistics

import msgspec

from tests.bench.latency import Latency

OURS, STOCK, DEFAULTS, BROKER = "this job", "pyspark's worker", "Spark's defaults", "a broker"
"""Whose figures they are: the job as it ships, with pyspark's own worker, with all of Spark's defaults; Kafka's own."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured, and for how long."""

    warm_up_seconds: float = 100.0
    measured_seconds: float = 30.0
    full_warm_up_seconds: float = 45.0
    full_measured_seconds: float = 60.0
    slow_warm_up_seconds: float = 6.0
    """Of Spark's defaults: the longer they are given, the further they fall behind; and of a broker."""
    slow_measured_seconds: float = 10.0
    formations: tuple[tuple[int, int], ...] = ((1, 5), (10, 5), (50, 2))
    """Members of a group, and how many such groups."""
    touched_groups: int = 4_000
    bursts: tuple[int, int] = (3, 2)
    """To warm up, and measured."""
    many_groups: int = 100_000
    settling_seconds: float = 150.0
    """Until a job without groups has mostly compiled what an idle batch runs; two or so of those a second."""
    settling_seconds_of_many: float = 60.0
    """The same, for one that has just had a minute of load."""
    idle_seconds: float = 15.0


QUICK = Scale(
    warm_up_seconds=8.0,
    measured_seconds=5.0,
    full_warm_up_seconds=3.0,
    full_measured_seconds=6.0,
    slow_warm_up_seconds=1.0,
    slow_measured_seconds=3.0,
    formations=((10, 1),),
    touched_groups=500,
    bursts=(1, 1),
    many_groups=2_000,
    settling_seconds=2.0,
    settling_seconds_of_many=2.0,
    idle_seconds=3.0,
)


class Second(msgspec.Struct, frozen=True):
    """The requests that were due in one second of a load, and their latencies in ms."""

    count: int
    p50_ms: float
    p99_ms: float


class Heartbeats(msgspec.Struct, frozen=True, kw_only=True):
    """Request to response at ``rate`` heartbeats a second of so many members, and who used how many cores meanwhile.

    ``sent_late`` is how much later than scheduled the generator sent; it is part of ``latency``. ``other_cores`` is
    whatever else runs on the machine, the broker above all: where nothing is left idle, the figures are about the
    machine. ``seconds`` shows whether the coordinator keeps up.
    """

    rate: int
    groups: int
    members: int
    latency: Latency
    sent_late: Latency
    failed: int
    coordinator_cores: float
    generator_cores: float
    other_cores: float
    seconds: list[Second]


class Formation(msgspec.Struct, frozen=True, kw_only=True):
    """Time from the first JoinGroup of a new group until all its members have their assignment.

    ``above_delay_ms`` has one entry for each group, less ``delay_ms``, which the protocol has them wait. ``batch_ms``
    is what a batch with requests took meanwhile, 0 where there are none.
    """

    members: int
    delay_ms: int
    above_delay_ms: list[float]
    batch_ms: float = 0.0

    @property
    def median_ms(self) -> float:
        """The one to compare by."""
        return statistics.median(self.above_delay_ms)


class Touched(msgspec.Struct, frozen=True):
    """A heartbeat of every one of ``groups`` at once: the seconds from the first sent to the last answered."""

    groups: int
    seconds: list[float]

    @property
    def per_second(self) -> float:
        """Groups a second."""
        return self.groups / statistics.median(self.seconds)


class Stretch(msgspec.Struct, frozen=True):
    """A part of a request's way, ms: the median of what was measured."""

    what: str
    milliseconds: float


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Of some processes together. ``pss_mib`` counts a page that several processes share once."""

    processes: int
    rss_mib: float
    pss_mib: float


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator whose groups are alive and say nothing."""

    groups: int
    coordinator_cores: float
    batch_ms: float
    files_per_hour: int


class Population(msgspec.Struct, frozen=True, kw_only=True):
    """Many groups of two members each: forming, keeping and finding them again after a kill.

    ``first_answer_seconds`` is from the start of the new process to the answer to a heartbeat that was waiting for it.
    """

    groups: int
    formed_seconds: float
    memory: dict[str, Memory]
    first_answer_seconds: float
    idle: Idle
    idle_when_empty: Idle

    @property
    def pss_mib(self) -> float:
        """Driver and workers together."""
        return sum(memory.pss_mib for memory in self.memory.values())


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured of one coordinator under load; what was not measured of it is None or empty."""

    start_seconds: float = 0.0
    steady: Heartbeats | None = None
    full: Heartbeats | None = None
    formations: list[Formation] = []
    touched: Touched | None = None
    way: list[Stretch] = []

    def formation(self, members: int) -> Formation | None:
        """The figures of one group size."""
        return next((formation for formation in self.formations if formation.members == members), None)


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
    """One run of the benchmark: everything before the same broker, one after the other.

    ``generator`` is the load generator alone: what it sends, it reads back from the broker itself.
    """

    date: str
    commit: str
    machine: dict[str, str]
    versions: dict[str, str]
    common: dict[str, str]
    scale: Scale
    logic: list[LogicFigure]
    generator: Heartbeats
    coordinators: dict[str, Figures]
    population: Population
