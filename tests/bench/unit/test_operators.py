"""The comparison of Spark's two operators: both send the same responses, and how the figures are shown."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.operators import transform_with_state
from tests.bench.operators.comparison import SYSTEMS, Operators, table
from tests.job.test_through_job import OPTIONS, compare, play_all, request_reply
from tests.oracle.scripts.generate import random_scripts
from tests.support.coordinator_process import CoordinatorProcess

SCRIPTS, REQUESTS, SEED = 8, 6, 5


@pytest.mark.long
@pytest.mark.parametrize("form", get_args(transform_with_state.Form))
def test_the_newer_operator_sends_the_responses_of_the_log_byte_for_byte(
    form: transform_with_state.Form, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    module, settings, environment = SYSTEMS[form]
    options = {**OPTIONS, **settings}
    with CoordinatorProcess(
        broker.bootstrap_servers, tmp_path, options, module=module, environment=environment
    ) as coordinator:
        coordinator.start()
        with closing(request_reply(coordinator)) as channel:
            groups = [f"{form}-{number}" for number in range(SCRIPTS)]
            scripts = random_scripts(SCRIPTS, seed_number=SEED, requests=REQUESTS)
            sent = asyncio.run(play_all(dict(zip(groups, scripts, strict=True)), channel))
            assert coordinator.stop() == 0, coordinator.tail()
            assert compare(coordinator, sent) > SCRIPTS * REQUESTS * 0.8


def test_medians_have_the_median_of_the_ratios_of_the_rounds_beside_them() -> None:
    figures = {"arrow": {"p50, ms": [100.0, 200.0, 400.0]}, "rows": {"p50, ms": [200.0, 300.0, 1200.0]}}
    operators = Operators(date="2026-01-01", commit="abc", machine={}, versions={}, figures=figures)
    assert list(operators.rows()) == [("p50, ms", [200.0, 300.0], [1.0, 2.0])]
    *_, shown = table(operators).columns
    assert list(shown.cells) == ["300.00 (2.00x)"]
