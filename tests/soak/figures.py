"""What a soak measures, as it is written to its file."""

import msgspec

ROLES = ("driver JVM", "driver Python", "Python workers", "gateway")
"""The processes that are measured."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the running system.

    ``at`` is in seconds since the start of the soak. ``lives`` counts the starts of a role's processes, ``settled`` has
    the roles that have run long enough since their start to compare. Latencies are those since the sample before, None
    if there was no answer. ``live_heap_mib`` is what a full collection leaves in the heap of the driver's JVM; most
    samples have none.
    """

    at: float
    lives: dict[str, int]
    settled: list[str]
    memory_mib: dict[str, float]
    live_heap_mib: float | None
    descriptors: dict[str, int]
    threads: dict[str, int]
    checkpoint_files: int
    checkpoint_mib: float
    heartbeat_p50_ms: float | None
    heartbeat_p99_ms: float | None
    commit_p50_ms: float | None


class Slope(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure grows, by linear regression of the means of blocks, with an intercept for each life of its process.

    ``per_day`` and its 95% confidence interval ``low`` to ``high`` are in the figure's unit a day. ``in_a_month`` is
    where ``last``, the mean of the last block, comes to in 30 days if the slope is ``low``: growth that the measurement
    cannot deny. ``ends_a_month`` says whether that exceeds ``limit``.
    """

    figure: str
    last: float
    per_day: float
    low: float
    high: float
    in_a_month: float
    limit: float
    ends_a_month: bool


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """A whole soak. ``wrong`` has a line for each answer or event that should not have been."""

    date: str
    commit: str
    minutes: float
    members: int
    counts: dict[str, int]
    wrong: list[str]
    slopes: list[Slope]
    samples: list[Sample]
