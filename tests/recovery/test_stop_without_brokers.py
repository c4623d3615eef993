"""SIGTERM while the brokers are away: a supervisor that kills after 90 s, as systemd does, does not have to."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.processes import Process

LIMIT_SECONDS = 20.0
LIMIT_WITH_BROKERS_SECONDS = 10.0

FEW_LINES = 70
"""More than the lines of a stop, and a warning of each of Spark's few Kafka clients each second until its deadline."""

pytestmark = pytest.mark.jvm


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(data_dir=tmp_path / "kafka") as broker:
        yield broker


def assert_stops_soon(process: Process, limit_seconds: float = LIMIT_SECONDS) -> None:
    before, began = len(process.output), time.monotonic()
    assert process.stop() == 0
    lines = process.output[before:]
    assert time.monotonic() - began < limit_seconds, lines
    assert len(lines) < FEW_LINES, lines


@pytest.mark.long
def test_a_job_stops_soon_whether_or_not_it_has_noticed(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    with CoordinatorProcess(own_broker.bootstrap_servers, tmp_path) as job:
        job.start()
        assert_stops_soon(job, LIMIT_WITH_BROKERS_SECONDS)
        job.start()
        own_broker.kill()
        assert_stops_soon(job)
        own_broker.restart()
        job.start()
        own_broker.kill()
        job.await_line("the absence", lambda line: "the brokers do not answer" in line)
        assert_stops_soon(job)


def test_job_standby_and_gateway_stop_soon_while_the_broker_hangs(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    job = CoordinatorProcess(own_broker.bootstrap_servers, tmp_path)
    same = {"checkpoint": str(job.checkpoint), "topic-prefix": job.topics.prefix, "standby": True}
    standby = CoordinatorProcess(own_broker.bootstrap_servers, tmp_path / "standby", same)
    with job, standby, GatewayProcess(own_broker.bootstrap_servers, job.topics.prefix) as gateway:
        job.start()
        gateway.start()
        standby.launch()
        standby.await_line("that it stands by", lambda line: "standby: the job on" in line)
        os.kill(own_broker.pid, signal.SIGSTOP)
        try:
            for process in (job, standby, gateway):
                assert_stops_soon(process)
        finally:
            os.kill(own_broker.pid, signal.SIGCONT)
