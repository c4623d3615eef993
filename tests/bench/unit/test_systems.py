"""Coordinators to measure: of other parts than those that ship, and with a record of their batches."""

import time
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.events import Events
from tests.bench.scenarios.loads import group_names
from tests.bench.systems.coordinators import DEFAULTS_MODULE, SHIPPED_MODULE, running
from tests.support.parameters.long_tests import mostly_long


@pytest.mark.parametrize("module", mostly_long([SHIPPED_MODULE, DEFAULTS_MODULE], [SHIPPED_MODULE]))
def test_a_coordinator_answers_and_records_the_batch_that_did(
    module: str, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    name, began = module.rpartition(".")[2], time.time()
    with (
        running(name, broker, tmp_path, {"profile": "latency"}, module, records_progress=True) as coordinator,
        Events(broker.bootstrap_servers, coordinator.topics.requests, coordinator.topics.responses) as events,
    ):
        (member,) = events.form_groups(group_names(name, 1), 1)
        timings = events.send_on_schedule(events.heartbeats([member]), [0.0])
        batches = coordinator.batches(began, time.time())
    assert (len(timings.latencies), timings.failed) == (1, 0)
    assert sum(batch.report["numInputRows"] for batch in batches) >= 3
