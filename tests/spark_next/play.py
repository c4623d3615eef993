"""Plays random requests to a job that uses some of Spark's internals: ``python -m tests.spark_next.play --off x,y``.

The responses must be those that the logic computes from the log, byte for byte, whatever is used: so they are the same
with an internal as without it. The job is stopped in between and goes on from its checkpoint.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from streaming.client.request_reply import RequestReply
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.spark_internals.registry import OFF_VARIABLE
from tests.job.spark_internals.test_job_without_internals import gauges
from tests.job.test_through_job import OPTIONS, Sent, compare, play_all, request_reply
from tests.oracle.scripts.generate import random_scripts
from tests.spark_next.entries import BOUND_TO_VERSIONS, NAMES
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import wait_until

SCRIPTS = 8
REQUESTS = (5, 4)
"""The number of requests for each group, before and after the stop."""
SEED = 17
QUIET_SECONDS = 1.0


def play(off: frozenset[str], folder: Path) -> int:
    """Play to a job that leaves these internals out; returns how many responses were compared.

    Raises AssertionError if a response differs, or the job does not use all the others.
    """
    with EmbeddedBroker() as broker, ExitStack() as stack:
        environment = {OFF_VARIABLE: ",".join(off)}
        options = {**OPTIONS, "metrics-port": 0}
        coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, options, environment=environment)
        stack.callback(coordinator.kill)
        sent: Sent = {f"spark-next-{number}": [] for number in range(SCRIPTS)}
        channel: RequestReply | None = None
        for number, requests in enumerate(REQUESTS):
            coordinator.start()
            used = {name for name in NAMES if gauges(coordinator)[_gauge(name)]}
            assert used == set(NAMES) - off, f"the job uses other internals: {sorted(used ^ (set(NAMES) - off))}"
            channel = channel or stack.enter_context(closing(request_reply(coordinator)))
            scripts = random_scripts(SCRIPTS, seed_number=SEED + number, requests=requests)
            for group_id, futures in asyncio.run(play_all(dict(zip(sent, scripts, strict=True)), channel)).items():
                sent[group_id] += futures
            _stop_between_batches(coordinator)
        return compare(coordinator, sent)


def _stop_between_batches(coordinator: CoordinatorProcess) -> None:
    """Stop the job while no batch runs: without one of the internals, a stop would interrupt the batch in flight."""
    logs = [coordinator.checkpoint / log for log in ("offsets", "commits")]
    while True:
        wait_until(lambda: _is_quiet(*logs), "a time without batches")
        assert coordinator.stop() == 0, coordinator.tail()
        planned, complete = map(_newest, logs)
        if planned.name == complete.name:
            return
        coordinator.start()


def _is_quiet(offsets: Path, commits: Path) -> bool:
    """Whether the newest batch is complete, for a while already."""
    newest = _newest(commits)
    return newest.name == _newest(offsets).name and time.time() - newest.stat().st_mtime > QUIET_SECONDS


def _newest(log: Path) -> Path:
    return max((path for path in log.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def _gauge(name: str) -> str:
    return f'group_coordinator_spark_internal{{entry="{name}"}}'


def main() -> None:
    """Play, and print the number of responses that were compared."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark_next.play", description=__doc__)
    parser.add_argument("--off", default="", help="the internals to leave out, separated by commas")
    off = frozenset(filter(None, parser.parse_args().off.split(",")))
    assert off <= set(BOUND_TO_VERSIONS), f"not to be left out: {sorted(off - set(BOUND_TO_VERSIONS))}"
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(f"{play(off, Path(folder))}\n")


if __name__ == "__main__":
    main()
