"""The verdict on a figure that grows, one that does not, and one that begins again with its process."""

import random

import pytest

from tests.soak.figures import Sample
from tests.soak.slopes import slopes

EVERY_SECONDS = 10.0
SECONDS = 2_400.0
"""As many blocks of ten samples as a soak has."""


def sample(number: int, *, memory: float, files: int = 300, life: int = 1) -> Sample:
    return Sample(
        at=number * EVERY_SECONDS,
        lives={"driver JVM": life},
        settled=["driver JVM"],
        memory_mib={"driver JVM": memory},
        live_heap_mib=None,
        descriptors={},
        threads={},
        checkpoint_files=files,
        checkpoint_mib=1.0,
        heartbeat_p50_ms=None,
        heartbeat_p99_ms=None,
        commit_p50_ms=None,
    )


def test_steady_growth_that_ends_a_month_is_seen() -> None:
    growing = [sample(number, memory=500 + 0.01 * number) for number in range(100)]
    (memory, *_) = slopes(growing, SECONDS)
    assert memory.per_day == pytest.approx(0.001 * 86_400, rel=0.01)
    assert memory.ends_a_month


def test_noise_around_a_constant_is_no_growth() -> None:
    noisy = [sample(number, memory=500 + (7 * number) % 5, files=300 + (3 * number) % 7) for number in range(200)]
    assert not any(slope.ends_a_month for slope in slopes(noisy, SECONDS))
    assert all(slope.low <= 0 <= slope.high for slope in slopes(noisy, SECONDS))


@pytest.mark.parametrize("seed", range(10))
def test_what_wanders_about_a_constant_is_no_growth(seed: int) -> None:
    numbers = random.Random(seed)
    wandering, distance = [], 0.0
    for number in range(240):
        distance = 0.8 * distance + numbers.gauss(0, 3)
        wandering.append(sample(number, memory=500 + distance))
    (memory, *_) = slopes(wandering, SECONDS)
    assert not memory.ends_a_month


def test_a_new_process_begins_at_its_own_level() -> None:
    lives = [sample(number, memory=400 + 50 * (number // 50), life=1 + number // 50) for number in range(200)]
    (memory, *_) = slopes(lives, SECONDS)
    assert memory.per_day == pytest.approx(0, abs=1e-6)


def test_too_few_samples_give_no_slope() -> None:
    assert slopes([sample(number, memory=500) for number in range(40)], SECONDS) == []
