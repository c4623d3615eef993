"""Which Python worker runs: the requested one, as far as this pyspark allows."""

import pytest

from streaming.job.spark_internals.python_worker.worker_choice import ARROW, STOCK, choose
from streaming.job.spark_internals.registry import ARROW_WORKER, OFF_VARIABLE

TRIED = "4.2.0"


def test_the_arrow_native_worker_runs_on_the_pyspark_that_it_was_tried_with() -> None:
    assert choose(ARROW, TRIED) == (ARROW, "the Arrow-native worker")


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "5.0.0"])
def test_the_stock_worker_runs_on_any_other_and_the_reason_names_both_versions(version: str) -> None:
    worker, why = choose(ARROW, version)
    assert worker == STOCK
    assert version in why
    assert TRIED in why


@pytest.mark.parametrize("version", [TRIED, "4.1.0"])
def test_the_stock_worker_can_be_requested(version: str) -> None:
    assert choose(STOCK, version) == (STOCK, "pyspark's own worker, as the options say")


def test_the_arrow_native_worker_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF_VARIABLE, ARROW_WORKER.name)
    worker, why = choose(ARROW, TRIED)
    assert worker == STOCK
    assert OFF_VARIABLE in why
