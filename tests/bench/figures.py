"""The figures of a run, as its JSON file keeps them."""

import statistics

import msgspec

from tests.bench.latency import Latency

DEFAULT, FIXED, LATENCY = "this job, default", "this job, fixed interval", "this job, latency"
"""The job as it ships, the same with a fixed interval, as in earlier releases, and with the profile ``latency``."""
STOCK_WORKER, SPARK_DEFAULTS = "pyspark's worker, latency", "Spark's defaults, latency"
BROKER = "Kafka's broker"

SMALL_COMMITS = "20 commits/s over 100 groups"
SMALL_HEARTBEATS = "20 heartbeats/s of 200 members"
STEADY_COMMITS = "1,000 commits/s over 100 groups"

FIRST_SECONDS = 15


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured, and for how long."""

    first_minute_seconds: float = 60.0
    """How long the load of a job that has just started lasts; also the warm-up of the default profile."""
    default_warm_up_seconds: float = 10.0
    latency_warm_up_seconds: float = 70.0
    steady_groups: int = 1_000
    steady_seconds: float = 20.0
    full_warm_up_seconds: float = 20.0
    default_full_seconds: float = 15.0
    latency_full_seconds: float = 60.0
    paced_warm_up_seconds: float = 5.0
    paced_seconds: float = 20.0
    short_warm_up_seconds: float = 6.0
    """Of Spark's defaults, which fall further behind the longer the load lasts; and of a broker."""
    short_seconds: float = 10.0
    formations: tuple[tuple[int, int], ...] = ((1, 5), (10, 5), (50, 2))
    """Members of a group, and how many such groups."""
    touched_groups: int = 4_000
    bursts: tuple[int, int] = (3, 2)
    """How many bursts warm up, and how many are measured."""
    many_groups: int = 100_000
    settling_seconds: float = 60.0
    """Until a job without groups has ended the work of its start."""
    settling_seconds_of_many: float = 75.0
    """The same for a job that has just formed the many groups. Their members have a minute to sync, and after it each
    group is due."""
    idle_seconds: float = 60.0
    empty_batches: int = 20

    @property
    def warms_up(self) -> bool:
        """Whether the job has compiled most of its code before it is measured."""
        return self.latency_warm_up_seconds >= 60


QUICK = Scale(
    first_minute_seconds=10.0,
    default_warm_up_seconds=2.0,
    latency_warm_up_seconds=8.0,
    steady_seconds=5.0,
    full_warm_up_seconds=2.0,
    default_full_seconds=5.0,
    latency_full_seconds=5.0,
    paced_warm_up_seconds=1.0,
    paced_seconds=4.0,
    short_warm_up_seconds=1.0,
    short_seconds=3.0,
    formations=((10, 1),),
    touched_groups=500,
    bursts=(1, 1),
    many_groups=2_000,
    settling_seconds=2.0,
    settling_seconds_of_many=2.0,
    idle_seconds=3.0,
)
SMALLEST = Scale(
    first_minute_seconds=1.0,
    default_warm_up_seconds=0.2,
    latency_warm_up_seconds=0.2,
    steady_groups=20,
    steady_seconds=1.0,
    full_warm_up_seconds=0.2,
    default_full_seconds=0.5,
    latency_full_seconds=0.5,
    paced_warm_up_seconds=0.2,
    paced_seconds=1.0,
    short_warm_up_seconds=0.2,
    short_seconds=0.5,
    formations=((2, 1),),
    touched_groups=20,
    bursts=(1, 1),
    many_groups=20,
    settling_seconds=0.2,
    settling_seconds_of_many=0.2,
    idle_seconds=1.0,
    empty_batches=2,
)
"""Shows that everything can be measured; the figures say nothing."""


class Window(msgspec.Struct, frozen=True):
    """The requests that were due in one window of time: its start in seconds, and latencies in ms."""

    start: int
    count: int
    p50_ms: float
    p99_ms: float


class FirstMinute(msgspec.Struct, frozen=True, kw_only=True):
    """Offset commits at ``rate`` a second, from the moment that a new job is ready."""

    rate: int
    groups: int
    failed: int
    windows: list[Window]

    def relative_start(self) -> float:
        """The highest p50 of a window in the first 15 s, relative to the median of the later ones; 0 without later."""
        first = [window.p50_ms for window in self.windows if window.start < FIRST_SECONDS]
        later = [window.p50_ms for window in self.windows if window.start >= FIRST_SECONDS]
        return max(first) / statistics.median(later) if later else 0.0


class Heartbeats(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of heartbeats or commits, ``rate`` a second over ``groups`` of ``members``, and the CPU used meanwhile.

    ``sent_late`` is how much later than scheduled the generator sent; it is part of ``latency``. ``other_cores`` is
    the rest of the machine, most of it the broker. When no core is idle, the figures measure the machine.
    ``seconds`` shows whether the coordinator keeps up.
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
    seconds: list[Window]


class Formation(msgspec.Struct, frozen=True, kw_only=True):
    """Time from the first JoinGroup of a new group until all its members have their assignment.

    ``above_delay_ms`` has an entry for each group, without the protocol's ``delay_ms``. ``batch_ms`` is the median
    duration of a batch with requests meanwhile, 0 where there are none.
    """

    members: int
    delay_ms: int
    above_delay_ms: list[float]
    batch_ms: float = 0.0

    @property
    def median_ms(self) -> float:
        """The median of the groups."""
        return statistics.median(self.above_delay_ms)


class Touched(msgspec.Struct, frozen=True):
    """Bursts of one heartbeat to each of ``groups``: seconds from the first request to the last response."""

    groups: int
    seconds: list[float]

    @property
    def per_second(self) -> float:
        """Groups a second."""
        return self.groups / statistics.median(self.seconds)


class Stage(msgspec.Struct, frozen=True):
    """A stage of a request's path: the median in ms."""

    name: str
    milliseconds: float


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of several processes together. ``pss_mib`` counts a shared page once."""

    processes: int
    rss_mib: float
    pss_mib: float


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator that receives no requests for ``seconds``; no session expires meanwhile.

    ``files`` are those of the checkpoint that were written. ``batch_ms`` is the median duration of batches that find
    nothing to do, which were provoked afterwards.
    """

    groups: int
    seconds: float
    coordinator_cores: float
    batches: int
    files: int
    batch_ms: float


class Population(msgspec.Struct, frozen=True, kw_only=True):
    """Many groups of two members each: formed, idle, and loaded after a kill. The profile is the default.

    ``first_answer_seconds`` is the time from the start of the new process until it answers a heartbeat that was
    appended before.
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
    """The figures of one coordinator under load; None or empty where nothing was measured."""

    start_seconds: float = 0.0
    first_minute: FirstMinute | None = None
    steady: Heartbeats | None = None
    full: Heartbeats | None = None
    paced: dict[str, Heartbeats] = {}
    """Small and steady loads, by what the report calls them."""
    formations: list[Formation] = []
    touched: Touched | None = None
    path: list[Stage] = []

    def formation(self, members: int) -> Formation | None:
        """The figures of one group size."""
        return next((formation for formation in self.formations if formation.members == members), None)


class LogicFigure(msgspec.Struct, frozen=True):
    """The cost of a step of the protocol, without Spark; ``goal`` is the most that it should be."""

    name: str
    value: float
    unit: str
    goal: float

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.goal


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the benchmark: all coordinators on the same broker, one after the other.

    ``generator`` is the load generator alone: it reads back its own records from the broker.
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
