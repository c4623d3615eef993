"""When a job is live and ready."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.contract.monitoring_server import Health, serving_monitoring
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.lifecycle.warm_up import WARM_UP_SECONDS
from streaming.job.monitoring.backlog import Backlog, SourceProgress
from streaming.job.monitoring.health import HealthLimits, job_health
from streaming.job.monitoring.metrics import WARM_BATCHES, Metrics, Progress
from streaming.job.options import load_options
from tests.job.monitoring.test_metrics import port_of, scraped
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append
from tests.support.processes import descendants, paused
from tests.support.request_events import commit, dumped
from tests.support.virtual_time import Clock
from tests.support.waiting import LIMIT_SECONDS, wait_until

STANDBY_LIMIT_SECONDS = 150.0

LIMITS = HealthLimits(batch_seconds=120, backlog=1_000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def job(metrics: Metrics, clock: Clock) -> Health:
    return job_health(metrics, LIMITS, clock)


def failing(checks: Any) -> list[str]:
    return [check.name for check in checks() if not check.ok]


def test_a_job_that_starts_is_live_and_not_ready(job: Health) -> None:
    assert failing(job.live) == []
    assert failing(job.ready) == ["first batch"]


def test_a_job_whose_batches_end_is_ready(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.last_batch_at = clock.now
    clock.now += 119
    assert failing(job.ready) == []


def warm(job: Health) -> list[str]:
    assert job.warm is not None
    return [check.detail for check in job.warm() if not check.ok]


def test_a_job_is_warm_when_java_has_compiled_what_each_batch_runs(job: Health, metrics: Metrics) -> None:
    for number in range(WARM_BATCHES):
        assert warm(job) == [f"{number} of {WARM_BATCHES} have run"]
        metrics.count_batch(Progress(batch_id=7 + number, duration_ms={}, sources=[]))
        metrics.count_batch(Progress(batch_id=7 + number, duration_ms={}, sources=[]))
    assert warm(job) == []
    assert metrics.registry.get_sample_value("group_coordinator_warm") == 1


def test_a_job_that_has_stood_by_for_long_enough_is_warm(job: Health, metrics: Metrics) -> None:
    metrics.note_warm_up()
    assert warm(job) == []


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_job_whose_batch_does_not_end_is_not_live(
    job: Health, metrics: Metrics, clock: Clock, has_begun: bool
) -> None:
    metrics.last_batch_at = metrics.waiting_since = clock.now if has_begun else None
    clock.now += 121
    assert failing(job.live) == ["batches"]


def test_an_idle_job_is_live_and_ready_however_long(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.last_batch_at = clock.now
    clock.now += 100_000
    metrics.answered_at = clock.now
    assert failing(job.ready) == []


def test_a_job_that_stands_by_is_live_and_not_ready_however_long(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.stands_by = True
    clock.now += 100_000
    assert failing(job.live) == []
    assert failing(job.ready) == ["first batch"]
    metrics.stands_by, metrics.active_since = False, clock.now
    assert failing(job.live) == []
    clock.now += 121
    assert failing(job.live) == ["batches"]


def test_a_job_that_waits_for_the_brokers_is_live_and_not_ready_however_long(
    job: Health, metrics: Metrics, clock: Clock
) -> None:
    metrics.last_batch_at = metrics.waiting_since = clock.now
    metrics.add_reader("batches", lambda: False)
    metrics.note_brokers_away()
    clock.now += 100_000
    metrics.answered_at = clock.now
    assert failing(job.live) == []
    assert failing(job.ready) == ["brokers"]
    clock.now += 121
    assert failing(job.live) == ["Spark"]


def test_a_query_that_starts_again_has_the_whole_limit_for_its_first_batch(
    job: Health, metrics: Metrics, clock: Clock
) -> None:
    metrics.last_batch_at = metrics.waiting_since = clock.now
    metrics.note_brokers_away()
    clock.now += 100_000
    metrics.note_query_start()
    metrics.query_started_at = clock.now
    assert failing(job.ready) == []
    clock.now += 119
    assert failing(job.live) == []
    clock.now += 2
    assert failing(job.live) == ["batches"]


def test_a_request_after_a_long_silence_has_the_whole_limit(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.last_batch_at = clock.now
    clock.now += 100_000
    metrics.waiting_since = clock.now
    clock.now += 119
    assert failing(job.live) == []
    clock.now += 2
    assert failing(job.live) == ["batches"]


def test_an_idle_job_whose_jvm_hangs_is_not_live(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.last_batch_at = metrics.answered_at = clock.now
    clock.now += 121
    assert failing(job.live) == ["Spark"]


def test_a_request_waits_until_a_batch_has_read_it(metrics: Metrics) -> None:
    read = [SourceProgress(None, {"requests": {"0": 7, "1": 5}})]
    metrics.count_batch(Progress(3, {}, read))
    metrics.note_ends({0: 7, 1: 5})
    assert metrics.waiting_since is None
    metrics.note_ends({0: 7, 1: 6})
    since = metrics.waiting_since
    assert since is not None
    metrics.note_ends({0: 9, 1: 6})
    assert metrics.waiting_since == since
    metrics.count_batch(Progress(4, {}, [SourceProgress(None, {"requests": {"0": 9, "1": 6}})]))
    metrics.note_ends({0: 9, 1: 6})
    assert metrics.waiting_since is None


def test_a_job_with_a_backlog_is_live_and_not_ready(job: Health, metrics: Metrics, clock: Clock) -> None:
    metrics.last_batch_at, metrics.backlog = clock.now, Backlog(1_001, 500.0)
    assert failing(job.live) == []
    assert failing(job.ready) == ["backlog"]


@pytest.mark.parametrize("skew_seconds", [-60.0, 60.0])
def test_a_job_whose_clock_differs_from_the_brokers_is_not_ready(
    job: Health, metrics: Metrics, clock: Clock, skew_seconds: float
) -> None:
    metrics.last_batch_at, metrics.skew_seconds = clock.now, skew_seconds
    assert failing(job.live) == []
    assert failing(job.ready) == ["clocks"]


def test_a_reader_that_has_ended_shows_in_health_and_metrics(job: Health, metrics: Metrics) -> None:
    metrics.add_reader("directory", lambda: False)
    assert failing(job.live) == ["reader of directory"]
    alive = metrics.registry.get_sample_value("group_coordinator_reader_alive", {"reader": "directory"})
    assert alive == 0


def test_by_default_the_pages_are_served_at_127_0_0_1_only(job: Health, metrics: Metrics) -> None:
    host = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": "/tmp/checkpoint"}, {}).metrics_host
    with serving_monitoring(host, 0, metrics.registry, job) as port:
        assert status(port, "live") == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), LIMIT_SECONDS)


@pytest.fixture(scope="module")
def own_job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A job whose directory nobody else writes, and which tests may pause."""
    options = {"metrics-port": 0, "health-batch-limit-ms": 3_000}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("health"), options) as process:
        process.start()
        yield process


def test_an_unreadable_record_of_the_directory_is_skipped_and_counted(own_job: CoordinatorProcess) -> None:
    coordinator = own_job
    servers, topics, port = coordinator.bootstrap_servers, coordinator.topics, port_of(coordinator)

    def gauge(name: str) -> float:
        return scraped(port)[f"group_coordinator_{name}", ()]

    append(servers, topics.directory, (b"bad", b"not JSON"), (b"nested", b"[" * 100_000))
    wait_until(lambda: gauge("unreadable_directory_records") == 2, "the records are counted")
    labels = ("directory entry", topics.directory)
    assert scraped(port)["group_coordinator_unreadable_records_total", labels] == 2
    append(servers, topics.requests, (b"group", dumped(commit("group", 1))))
    wait_until(lambda: gauge("offsets") == 1, "the gauges follow the directory")


def test_a_job_that_hangs_is_not_live(own_job: CoordinatorProcess) -> None:
    coordinator = own_job
    port = port_of(coordinator)
    wait_until(lambda: status(port, "ready") == 200, "the job is ready")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), LIMIT_SECONDS)
    hanging = descendants(coordinator.pid)
    with paused(hanging):
        wait_until(lambda: status(port, "live") == 503, "the job is not live")
    wait_until(lambda: status(port, "live") == 200, "the job is live again")


def status(port: int, page: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/{page}", timeout=LIMIT_SECONDS) as answer:
            assert json.load(answer)["ok"]
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.mark.long
def test_a_standby_says_when_it_is_warm(broker: EmbeddedBroker, tmp_path: Path) -> None:
    shared = {"metrics-port": 0, "standby": True, "checkpoint": str(tmp_path / "checkpoint"), "topic-prefix": "warm-"}
    with (
        CoordinatorProcess(broker.bootstrap_servers, tmp_path / "active", shared) as active,
        CoordinatorProcess(broker.bootstrap_servers, tmp_path / "standby", shared) as standby,
    ):
        active.start()
        standby.launch()
        standby.await_line("that it stands by", lambda line: "standby: the job on" in line, STANDBY_LIMIT_SECONDS)
        port = port_of(standby)
        assert status(port, "warm") == 503
        wait_until(lambda: status(port, "warm") == 200, "the standby is warm", pause=1.0, limit=3 * WARM_UP_SECONDS)
        assert scraped(port)["group_coordinator_standby", ()] == 1
