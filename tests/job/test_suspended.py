"""A job that was suspended, as by a laptop's lid or a virtual machine's pause."""

import signal
import time
from pathlib import Path

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.processes import process_tree, signal_each
from tests.support.request_events import commit, correlation_id, dumped
from tests.support.waiting import wait_until

SECONDS = 2
"""How long Spark waits for a heartbeat of an executor. The default is two minutes."""

PAUSES = [(signal.SIGSTOP, 2.0 * SECONDS), (signal.SIGCONT, 1.0 * SECONDS)] * 3
"""What the processes get, and for how long. Whether Spark misses a heartbeat after a pause depends on a race of two of
its timers."""

IMPATIENT = {
    "spark.network.timeout": f"{SECONDS}s",
    "spark.network.timeoutInterval": "200ms",
    "spark.executor.heartbeatInterval": "500ms",
    "spark.executor.heartbeat.maxFailures": "1",
}


def test_a_job_goes_on_after_a_pause_in_which_its_executor_sent_no_heartbeat(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path, IMPATIENT) as job:
        job.start()
        processes = process_tree(job.pid)
        for number, seconds in PAUSES:
            signal_each(processes, number)
            over = time.monotonic() + seconds
            wait_until(lambda over=over: time.monotonic() > over, "the end of the time")  # type: ignore[misc]
        assert job.is_running, job.tail()
        group_id = correlation_id()
        request = commit(group_id, 5)
        append(broker.bootstrap_servers, job.topics.requests, (group_id.encode(), dumped(request)))
        with reading(broker.bootstrap_servers, job.topics.responses) as responses:
            responses.first(lambda record: record.key == request["correlationId"].encode(), "the answer")
