"""How a job's throughput grows with its executors, each of which has a fixed share of a core.

`make bench-scale` starts a standalone cluster with as many workers as there are executors, and a job with as many
partitions of state and requests. Once it is warm, each worker is limited to its share, and a backlog of commits is
worked off. Driver, broker and load have what the shares leave of the machine.
"""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.cluster.quota import control_group
from tests.bench.events import Events
from tests.bench.scenarios.loads import group_names, shuffled
from tests.bench.usage import find_coordinator
from tests.cluster.standalone import StandaloneCluster
from tests.cluster.with_store import JOB
from tests.support.coordinator_process import READY_LIMIT_SECONDS, CoordinatorProcess
from tests.support.processes import process_tree, processor_seconds
from tests.support.waiting import LIMIT_SECONDS, wait_until

WORK_OFF_LIMIT_SECONDS = 900.0
PAUSE_SECONDS = 0.1
WARM_UPS = 3
"""How often as many requests as are measured are worked off before, without a limit: until Java has compiled most of
what it needs, which a share of a core would take minutes for."""


class Scaled(msgspec.Struct, frozen=True):
    """A run: the requests each second, and the cores that were used meanwhile."""

    executors: int
    share_of_a_core: float
    requests: int
    seconds: float
    requests_per_second: float
    driver_cores: float
    executor_cores: list[float]


def measure(broker: EmbeddedBroker, folder: Path, executors: int, share: float, requests: int, groups: int) -> Scaled:
    """Work off a backlog with this many executors."""
    options = {
        **JOB,
        "state-partitions": executors,
        "request-partitions": executors,
        "response-partitions": 1,
        "make-class-archive": False,
    }
    with ExitStack() as stack:
        shares = [stack.enter_context(control_group(f"executor-{number}")) for number in range(executors)]
        cluster = StandaloneCluster(folder / "spark", executors, cores=1, within=lambda number: shares[number].enter)
        stack.enter_context(cluster)
        job = CoordinatorProcess(
            broker.bootstrap_servers, folder / "job", {**options, "master": cluster.master_url}, defaults={}
        )
        stack.enter_context(job)
        job.start(READY_LIMIT_SECONDS)
        names = group_names("scale", groups)
        with Events(broker.bootstrap_servers, job.topics.requests, job.topics.responses) as events:
            load = shuffled(events.commits(names))
            work_off = _Backlog(broker.bootstrap_servers, job.topics.responses)
            for _ in range(WARM_UPS):
                with work_off.awaited(requests):
                    events.append_all(islice(cycle(load), requests))
            for each in shares:
                each.limit(share)
            # The two sides of the work: the executors, and everything of the driver's process.
            driver = [find_coordinator(job.pid).jvm, job.pid]
            workers = [process_tree(worker.pid) for worker in cluster.workers]
            used = [_used(pids) for pids in (driver, *workers)]
            began = time.monotonic()
            with work_off.awaited(requests):
                events.append_all(islice(cycle(load), requests))
            seconds = time.monotonic() - began
            cores = [_since(before) / seconds for before in used]
        job.stop()
    return Scaled(
        executors,
        share,
        requests,
        round(seconds, 2),
        round(requests / seconds, 1),
        round(cores[0], 2),
        [round(each, 2) for each in cores[1:]],
    )


class _Backlog:
    """The responses of a job, by the end of their topic."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._partition = TopicPartition(topic, 0)

    @contextmanager
    def awaited(self, count: int) -> Iterator[None]:
        """Wait at the end of the block until there are this many responses more than before it."""
        before = self._end()
        yield
        what = f"{count} responses"
        wait_until(lambda: self._end() >= before + count, what, WORK_OFF_LIMIT_SECONDS, pause=PAUSE_SECONDS)

    def _end(self) -> int:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        (future,) = self._admin.list_offsets({self._partition: latest}).values()
        return int(future.result(LIMIT_SECONDS).offset)


def _used(pids: list[int]) -> dict[int, float]:
    used = {}
    for pid in pids:
        with suppress(FileNotFoundError):
            used[pid] = processor_seconds(pid)
    return used


def _since(before: dict[int, float]) -> float:
    """The processor seconds of processes since; of those that have ended meanwhile, none."""
    used = 0.0
    for pid, seconds in before.items():
        with suppress(FileNotFoundError):
            used += processor_seconds(pid) - seconds
    return used


def described(runs: list[Scaled]) -> Iterator[str]:
    """The runs as rows of a table, each with its efficiency beside the first one."""
    first = runs[0]
    yield "| executors | requests/s | efficiency | driver, cores | executors, cores each |"
    yield "|---:|---:|---:|---:|---:|"
    for run in runs:
        speed_up = run.requests_per_second / first.requests_per_second
        efficiency = speed_up * first.executors / run.executors
        yield (
            f"| {run.executors} | {run.requests_per_second:,.0f} | {efficiency:.0%} | {run.driver_cores:.2f} "
            f"| {', '.join(f'{each:.2f}' for each in run.executor_cores)} |"
        )


def scale(
    executors: Annotated[str, typer.Option(help="Numbers of executors.")] = "1,2,4",
    share: Annotated[float, typer.Option(help="The share of a core of each.", min=0.01)] = 0.2,
    requests: Annotated[int, typer.Option(help="Requests of each measurement.", min=1)] = 20_000,
    groups: Annotated[int, typer.Option(help="Groups.", min=1)] = 1_000,
) -> None:
    """Measure the throughput with each number of executors; print the runs as JSON, and a table."""
    # As an exception, SIGTERM ends the processes, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs = []
    with tempfile.TemporaryDirectory(prefix="group-coordinator-scale-") as folder, EmbeddedBroker() as broker:
        for count in map(int, executors.split(",")):
            typer.echo(f"{count} executors with {share:g} of a core each", err=True)
            runs.append(measure(broker, Path(folder, str(count)), count, share, requests, groups))
    typer.echo(msgspec.json.format(msgspec.json.encode(runs), indent=2).decode())
    for line in described(runs):
        typer.echo(line, err=True)


if __name__ == "__main__":
    typer.run(scale)
