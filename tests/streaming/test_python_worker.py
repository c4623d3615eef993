"""Which Python worker runs: what was asked for, as far as this pyspark allows."""

import pytest

from streaming.python_worker import ARROW, MADE_FOR, STOCK, choose


def test_the_quick_worker_runs_on_the_pyspark_that_it_was_made_for() -> None:
    assert choose(ARROW, MADE_FOR) == (ARROW, "the Arrow-native worker")


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "5.0.0"])
def test_on_any_other_pysparks_own_runs_and_both_versions_are_told(version: str) -> None:
    worker, why = choose(ARROW, version)
    assert worker == STOCK
    assert version in why
    assert MADE_FOR in why


@pytest.mark.parametrize("version", [MADE_FOR, "4.1.0"])
def test_pysparks_own_can_be_asked_for(version: str) -> None:
    assert choose(STOCK, version) == (STOCK, "pyspark's own worker, as asked for")
