"""How the figures of a soak grow, and whether one of them would end a month."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.soak.figures import ROLES, Sample, Slope

SECONDS_PER_DAY = 86_400.0
DAYS = 30
BLOCKS = 24
"""Into how many blocks the whole time is cut. A point of the regression is the mean of a block: of five minutes in a
soak of two hours. Samples that follow each other are alike, so that they would make a slope seem far too certain.
"""
CONFIDENCE = 2.2
"""Standard errors on either side of the slope: 95% of Student's t distribution with 11 degrees of freedom, as many as
the last 55 minutes of two hours leave."""

FEWEST_BLOCKS = 5
JOB = "driver JVM"

MEMORY_LIMITS_MIB = {"driver JVM": 2_048.0, "driver Python": 1_024.0, "Python workers": 2_048.0, "gateway": 1_024.0}
"""The JVM's heap is 1 GiB; as much again is for what a JVM needs beside its heap."""

LIVE_HEAP_LIMIT_MIB = 768.0
"""The rest of the heap is for a batch."""

DESCRIPTOR_LIMIT, THREAD_LIMIT = 1_024.0, 1_024.0
CHECKPOINT_FILE_LIMIT, CHECKPOINT_LIMIT_MIB = 20_000.0, 10_240.0
LATENCY_LIMIT_MS = 5_000.0


class _Figure(NamedTuple):
    """A figure over time. ``role`` is the process whose restarts begin it again."""

    name: str
    role: str
    limit: float
    value: Callable[[Sample], float | None]


def slopes(samples: Sequence[Sample], seconds: float) -> list[Slope]:
    """The slope of every figure with enough samples of settled processes, from a soak of so many ``seconds``."""
    return [slope for figure in _figures() if (slope := _slope(figure, samples, seconds / BLOCKS)) is not None]


def _figures() -> Iterator[_Figure]:
    for role in ROLES:
        yield _Figure(f"memory of {role}, MiB", role, MEMORY_LIMITS_MIB[role], _of_role("memory_mib", role))
        yield _Figure(f"descriptors of {role}", role, DESCRIPTOR_LIMIT, _of_role("descriptors", role))
        yield _Figure(f"threads of {role}", role, THREAD_LIMIT, _of_role("threads", role))
    yield _Figure("live heap of driver JVM, MiB", JOB, LIVE_HEAP_LIMIT_MIB, lambda sample: sample.live_heap_mib)
    yield _Figure("checkpoint files", JOB, CHECKPOINT_FILE_LIMIT, lambda sample: sample.checkpoint_files)
    yield _Figure("checkpoint, MiB", JOB, CHECKPOINT_LIMIT_MIB, lambda sample: sample.checkpoint_mib)
    yield _Figure("heartbeat p50, ms", JOB, LATENCY_LIMIT_MS, lambda sample: sample.heartbeat_p50_ms)
    yield _Figure("commit p50, ms", JOB, LATENCY_LIMIT_MS, lambda sample: sample.commit_p50_ms)


def _of_role(field: str, role: str) -> Callable[[Sample], float | None]:
    def value(sample: Sample) -> float | None:
        by_role: dict[str, float] = getattr(sample, field)
        return by_role.get(role)

    return value


def _slope(figure: _Figure, samples: Sequence[Sample], block_seconds: float) -> Slope | None:
    lives: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for sample in samples:
        value = figure.value(sample)
        if figure.role in sample.settled and value is not None:
            lives[sample.lives[figure.role]].append((sample.at, value))
    means = (_block_means(life, block_seconds) for life in lives.values())
    compared = [life for life in means if len(life) >= FEWEST_BLOCKS]
    if not compared:
        return None
    # Subtracting each life's mean gives each life an intercept of its own.
    centred = np.concatenate([life - life.mean(axis=0) for life in compared])
    at, values = centred[:, 0], centred[:, 1]
    spread = float(at @ at)
    slope = float(at @ values) / spread
    residuals = values - slope * at
    freedom = max(1, len(values) - len(compared) - 1)
    margin = CONFIDENCE * float(np.sqrt((residuals @ residuals) / freedom / spread))
    last = float(compared[-1][-1, 1])
    low, high = (slope - margin) * SECONDS_PER_DAY, (slope + margin) * SECONDS_PER_DAY
    in_a_month = last + max(0.0, low) * DAYS
    return Slope(
        figure=figure.name,
        last=round(last, 1),
        per_day=round(slope * SECONDS_PER_DAY, 1),
        low=round(low, 1),
        high=round(high, 1),
        in_a_month=round(in_a_month, 1),
        limit=figure.limit,
        ends_a_month=in_a_month > figure.limit,
    )


def _block_means(life: Sequence[tuple[float, float]], block_seconds: float) -> NDArray[np.float64]:
    """The mean time and value of each block; one with less than half of its samples, at either end, is left out."""
    blocks: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value in life:
        blocks[int(at // block_seconds)].append((at, value))
    usual = max(map(len, blocks.values()))
    return np.array([np.mean(block, axis=0) for block in blocks.values() if 2 * len(block) >= usual])
