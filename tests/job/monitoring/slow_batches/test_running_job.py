"""A slow batch of a running job, which waits for a Python worker that is stopped."""

import time

from streaming.job.monitoring.slow_batches.causes import NEEDED_BATCHES
from streaming.job.monitoring.slow_batches.recorder import NOT_REPORTED
from tests.job.monitoring.test_metrics import port_of, scraped
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.kafka_io import append
from tests.support.processes import descendants, names, paused
from tests.support.request_events import commit, correlation_id, dumped
from tests.support.waiting import wait_until

STOPPED_SECONDS = 3.0
"""Several times a usual batch, also on a busy machine."""


def test_a_slow_batch_is_counted_and_reported(coordinator: CoordinatorProcess) -> None:
    group_id, port = correlation_id(), port_of(coordinator)
    for offset in range(NEEDED_BATCHES):
        commit_offsets(coordinator, group_id, offset)

    def slow_batches() -> float:
        return sum(
            value
            for (name, labels), value in scraped(port).items()
            if name == "group_coordinator_slow_batches_total" and labels[0] not in NOT_REPORTED
        )

    def lines() -> int:
        return sum("for 1 requests, usually" in line for line in coordinator.output)

    counted, reported = slow_batches(), lines()
    workers = [pid for pid in descendants(coordinator.pid) if names(pid, b"worker_daemon")]
    assert workers
    with paused(workers):
        append(
            coordinator.bootstrap_servers,
            coordinator.topics.requests,
            (group_id.encode(), dumped(commit(group_id, 99))),
        )
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > STOPPED_SECONDS, "the batch is slow")
    wait_until(lambda: slow_batches() > counted, "the slow batch is counted")
    wait_until(lambda: lines() > reported, "a line is printed")
