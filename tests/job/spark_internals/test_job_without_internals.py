"""A pyspark that none of Spark's internals was tried with: the job works, slower, and says what it lacks."""

import json
import urllib.request
from collections.abc import Callable

import pytest

from streaming.job.spark_internals.python_worker.worker_choice import ARROW, STOCK, VARIABLE
from streaming.job.spark_internals.registry import INTERNALS, OFF_VARIABLE
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, dumped
from tests.support.waiting import LIMIT_SECONDS


def messages(coordinator: CoordinatorProcess) -> list[str]:
    return [json.loads(line)["message"] for line in coordinator.output if line.startswith("{")]


def gauges(coordinator: CoordinatorProcess) -> dict[str, float]:
    """The gauges of Spark's internals, by name and label as on the metrics page."""
    prefix = "serving metrics at port "
    (port,) = (line.removeprefix(prefix) for line in messages(coordinator) if line.startswith(prefix))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_SECONDS) as page:
        samples = (line.rsplit(" ", 1) for line in page.read().decode().splitlines() if not line.startswith("#"))
    ours = ("group_coordinator_spark_internal", "group_coordinator_python_worker_info")
    return {name: float(value) for name, value in samples if name.startswith(ours)}


def answer(coordinator: CoordinatorProcess, offset: int) -> int:
    """Commit an offset; the error code of the response."""
    request = commit("group", offset)
    append(coordinator.bootstrap_servers, coordinator.topics.requests, (b"group", dumped(request)))
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
        key = request["correlationId"].encode()
        return int(responses.first(lambda record: record.key == key, "the response").value["errorCode"])


def test_the_job_works_without_them_and_a_later_start_uses_them_again(
    new_coordinator: Callable[..., CoordinatorProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The variable would win over the option.
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(OFF_VARIABLE, "all")
    coordinator = new_coordinator({"metrics-port": 0})
    coordinator.start()
    assert answer(coordinator, 1) == 0
    (warning,) = (line for line in messages(coordinator) if line.startswith("warning"))
    left_out = {internal for internal in INTERNALS if f"{internal.name} (" in warning}
    assert left_out == {internal for internal in INTERNALS if internal.tried is not None}
    assert gauges(coordinator) == {
        **{f'group_coordinator_spark_internal{{entry="{each.name}"}}': each not in left_out for each in INTERNALS},
        f'group_coordinator_python_worker_info{{worker="{STOCK}"}}': 1,
    }
    assert coordinator.stop() == 0

    monkeypatch.delenv(OFF_VARIABLE)
    coordinator.start()
    assert answer(coordinator, 2) == 0
    assert not any(line.startswith("warning") for line in messages(coordinator))
    assert set(gauges(coordinator).values()) == {1}
    assert f'group_coordinator_python_worker_info{{worker="{ARROW}"}}' in gauges(coordinator)
    assert coordinator.stop() == 0
