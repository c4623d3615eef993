"""`make cluster-demo`: the coordinator on a Spark cluster with its checkpoint in an object store, and two kills.

Everything is on this machine: a standalone master with two workers, an S3 server, a broker, a job with a standby, a
gateway, and consumers of three client libraries.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from streaming.client import CoordinatorError
from streaming.contract.errors import CannotRun
from streaming.contract.output.terminal import standard_output
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.demo.group_consumers import Check
from streaming.drills.demo.run import (
    FINISH,
    GROUP,
    JOIN,
    JOIN_KAFKA_CLIENTS,
    KILL_ACTIVE_JOB,
    Act,
    Demo,
    played,
    playing,
)
from streaming.drills.own_coordinator import OwnCoordinator, own_folder
from streaming.drills.waiting import DrillFailed
from streaming.embedded.jars import MissingPrerequisite
from streaming.embedded.job_process import NotReported
from tests.cluster.with_store import ClusterWithStore
from tests.support.processes import started_at

EXECUTORS_OF_A_JOB = 2
"""One for its state partition, and a spare one."""

TITLE = "A Spark cluster with two workers, an S3 server, a broker, the coordinator with a gateway, and a topic"


def kill_executors(cluster: ClusterWithStore, demo: Demo) -> Iterator[Check]:
    """Kill each executor of the active job once: one of them has the group. Check that no group rebalances."""
    before = dict(demo.members.reports.generations)
    # Those of the standby started later.
    executors = sorted(cluster.spark.executors(), key=started_at)[:EXECUTORS_OF_A_JOB]
    count = len(cluster.spark.executors())
    silences = []
    for killed in executors:
        demo.wait_until("each job has its executors", lambda: len(cluster.spark.executors()) >= count)
        os.kill(killed, signal.SIGKILL)
        killed_at = time.monotonic()
        demo.recording.step("fault", "an executor is dead")
        with demo.client() as client:
            demo.wait_for("the job describes the group", partial(client.describe_groups, [GROUP]))
        silences.append(f"{time.monotonic() - killed_at:.1f} s")
    after = dict(demo.members.reports.generations)
    detail = f"first answers after {' and '.join(silences)}; generations {before} before, {after} after"
    yield Check("the end of an executor caused no rebalance", before == after, detail)


def run(output: ConsoleOutput) -> list[Check]:
    """Play the acts, and leave no process and no file behind; returns what was checked."""
    began = time.monotonic()
    with own_folder() as folder, ExitStack() as stack:
        output.line("starting a Spark cluster and an S3 server")
        cluster = stack.enter_context(ClusterWithStore(folder))
        options = cluster.options("demo/checkpoint")
        settings = [f"{key}={value}" for key, value in options.items() if key != "checkpoint"]
        coordinator = partial(OwnCoordinator, folder, settings, stored_at=str(options["checkpoint"]))
        acts = (
            JOIN,
            JOIN_KAFKA_CLIENTS,
            Act(
                "Each executor of the active job is killed once (kill -9)",
                "The other one reads the state of the groups from the object store, and goes on. A new one starts.",
                partial(kill_executors, cluster),
            ),
            KILL_ACTIVE_JOB,
            FINISH,
        )
        demo = stack.enter_context(playing(output, TITLE, coordinator))
        checks = [check for number, act in enumerate(acts, 2) for check in played(demo, number, act)]
    output.line("")
    output.end("passed" if all(check.passed for check in checks) else "FAILED", time.monotonic() - began)
    return checks


def main() -> int:
    """Run it; returns the exit code."""
    # As an exception, SIGTERM ends the processes, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    terminal = standard_output()
    try:
        return 0 if all(check.passed for check in run(ConsoleOutput(terminal))) else 1
    except pytest.skip.Exception as missing:
        terminal.line(f"error: the S3 server cannot be built: {missing}")
    except (DrillFailed, NotReported, CoordinatorError, CannotRun, MissingPrerequisite) as failure:
        for line in str(failure).splitlines():
            terminal.line(line)
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
