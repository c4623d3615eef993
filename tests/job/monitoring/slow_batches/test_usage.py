"""How much was used in an interval between samples."""

import pytest

from streaming.job.monitoring.slow_batches.usage import KEPT_SAMPLES, Sample, Usage


def usage_of(*samples: tuple[float, float]) -> Usage:
    usage = Usage()
    for seconds, collecting in samples:
        usage.add(Sample(seconds, {"collecting": collecting}))
    return usage


def test_use_is_even_between_two_samples() -> None:
    usage = usage_of((10.0, 1.0), (11.0, 2.0), (12.0, 4.0))
    assert usage.between(10.0, 12.0) == {"collecting": 3.0}
    assert usage.between(10.5, 11.25) == {"collecting": pytest.approx(1.0)}
    assert usage.between(11.0, 11.0) == {"collecting": 0.0}


@pytest.mark.parametrize(("began", "ended"), [(9.0, 11.0), (10.5, 12.5), (20.0, 21.0)])
def test_an_interval_that_the_samples_do_not_cover_has_no_use(began: float, ended: float) -> None:
    assert usage_of((10.0, 1.0), (12.0, 2.0)).between(began, ended) == {}


def test_nothing_is_known_before_the_first_sample() -> None:
    assert Usage().until < 0
    assert Usage().between(1.0, 2.0) == {}


def test_what_only_some_samples_have_is_left_out() -> None:
    usage = usage_of((10.0, 1.0))
    usage.add(Sample(12.0, {"collecting": 2.0, "stolen": 9.0}))
    assert usage.between(10.0, 12.0) == {"collecting": 1.0}


def test_a_leap_back_of_the_clock_forgets_what_was_before() -> None:
    usage = usage_of((10.0, 1.0), (11.0, 2.0), (5.0, 3.0), (6.0, 4.0))
    assert usage.between(5.0, 6.0) == {"collecting": 1.0}
    assert usage.between(10.0, 11.0) == {}


def test_old_samples_are_forgotten() -> None:
    usage = usage_of(*((float(number), 0.0) for number in range(KEPT_SAMPLES + 10)))
    assert usage.between(0.0, 20.0) == {}
    assert usage.between(20.0, 30.0) == {"collecting": 0.0}
