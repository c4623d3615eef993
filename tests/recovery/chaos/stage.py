"""The processes of a run: brokers, the active job, perhaps a standby and a gateway. Faults break them."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self

from streaming.contract.topics import TopicNames
from tests.cluster.standalone import EXECUTOR as EXECUTOR_CLASS
from tests.cluster.with_store import ClusterWithStore
from tests.recovery.chaos.clocks import SteppedClock
from tests.recovery.chaos.cluster import Cluster
from tests.recovery.chaos.disk import small_disk
from tests.recovery.chaos.needs import Need
from tests.recovery.recorded.surroundings import HEARTBEAT_MS, SESSION_MS
from tests.support.coordinator_process import CoordinatorProcess, linked_spark_home, reports_ready
from tests.support.gateway_process import GatewayProcess
from tests.support.processes import descendants, names, process_tree
from tests.support.waiting import wait_until

START_LIMIT_SECONDS = 360.0
"""How long it may take until a job runs again, every attempt included."""

ATTEMPT_SECONDS = 240.0
"""An attempt with an executor of a cluster takes 25 s on an idle machine, and more than 120 s beside other work."""

GATEWAY_NEEDS_BROKERS = "does not answer"
"""In the last line of a gateway that has started without brokers."""

PAUSE_SECONDS = 0.5

JOB = {
    # Batches begin when requests arrive, as they do by default.
    "cpu-budget": 1.5,
    "group.initial.rebalance.delay.ms": 500,
    # Those of the classic members, who choose them themselves.
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    # It would take the cores of what the run measures.
    "make-class-archive": False,
    # Snapshots come within a run of seconds.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 5,
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
}
EXECUTOR = {"master": "local-cluster[1,1,768]", "spark.executor.memory": "768m"}


class Stage:
    """The processes of a run; all of them end with the ``with`` block.

    ``options`` and ``environment``: of every job. The run sets ``append(group, request)``, which appends a request
    whose answer nobody awaits, and ``cutting_off_half()``, within which every second client reaches no broker.
    """

    append: Callable[[str, bytes], None]
    cutting_off_half: Callable[[], AbstractContextManager[None]]

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        needs: frozenset[Need],
        options: dict[str, object],
        job_clock: SteppedClock | None = None,
        environment: Mapping[str, str] | None = None,
        spark_cluster: ClusterWithStore | None = None,
    ) -> None:
        self.cluster = cluster
        self.spark_cluster = spark_cluster
        self.job_clock = job_clock
        self.notes: list[str] = []
        """What happened to the processes beside the faults."""
        self.job_ends: list[str] = []
        """The last line of each job that has ended by itself."""
        self.failures: list[str] = []
        """What no fault explains."""
        self.log: list[str] = []
        """The output of the jobs that have ended, with a line before each."""
        name = f"{folder.name}/checkpoint"
        self.checkpoint = folder / "disk" / "checkpoint" if spark_cluster is None else spark_cluster.folder_of(name)
        """The folder in which it is, also that of an object store."""
        self._needs = needs
        self._stack = ExitStack()
        self._lock = threading.RLock()
        is_standby_needed = Need.STANDBY in needs
        place: Mapping[str, object] = {"checkpoint": str(self.checkpoint)}
        if spark_cluster is not None:
            place = spark_cluster.options(name)
        elif Need.CLUSTER in needs:
            place = {**place, **EXECUTOR}
        shared = {
            **JOB,
            **place,
            "standby": is_standby_needed,
            **options,
        }
        variables = {**(environment or {}), **({} if job_clock is None else job_clock.environment)}
        if Need.CLUSTER in needs and spark_cluster is None:
            variables["SPARK_HOME"] = str(linked_spark_home(folder))
        servers = cluster.bootstrap_servers
        self.jobs = [CoordinatorProcess(servers, folder / "job-0", shared, environment=variables)]
        if is_standby_needed:
            same = shared | {"topic-prefix": self.jobs[0].topics.prefix}
            self.jobs.append(CoordinatorProcess(servers, folder / "job-1", same, environment=variables))
        self.gateway: GatewayProcess | None = None
        if Need.GATEWAY in needs:
            self.gateway = GatewayProcess(servers, self.topics.prefix)

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.push(self._stack)
            if Need.SMALL_DISK in self._needs:
                self._stack.enter_context(small_disk(self.checkpoint.parent))
            for job in self.jobs:
                self._stack.callback(job.kill)
                self.start_job(job)
            if self.gateway is not None:
                self._stack.callback(self.gateway.kill)
                self.start_gateway()
            on_failure.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    @property
    def topics(self) -> TopicNames:
        """The coordinator's topics."""
        return self.jobs[0].topics

    @property
    def executors(self) -> list[int]:
        """The process ids of the executors that are processes of their own."""
        if self.spark_cluster is not None:
            return self.spark_cluster.spark.executors()
        return [
            pid for job in self.jobs if job.is_running for pid in descendants(job.pid) if names(pid, EXECUTOR_CLASS)
        ]

    # ---- jobs ------------------------------------------------------------------------------------------------

    @property
    def active(self) -> CoordinatorProcess:
        """The active job. Waits until there is one, and starts jobs that have ended by themselves."""
        self.ensure_active()
        return next(job for job in self.jobs if is_ready(job))

    @property
    def standby(self) -> CoordinatorProcess:
        """The other job of two."""
        active = self.active
        return next(job for job in self.jobs if job is not active)

    def ensure_active(self) -> None:
        """Start jobs that have ended by themselves, and wait until one is active."""
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while True:
            self.start_ended_jobs()
            if any(map(is_ready, self.jobs)):
                return
            assert time.monotonic() < deadline, f"no job is active\n{self.tails()}"
            time.sleep(0.05)

    def start_ended_jobs(self) -> None:
        """Start jobs that have ended by themselves."""
        for job in self.jobs:
            if not job.is_running:
                self.note_end(job)
                self.start_job(job)

    @property
    def lacks_process(self) -> bool:
        """Whether a job or the gateway has ended."""
        processes = [*self.jobs, *([] if self.gateway is None else [self.gateway])]
        return not all(process.is_running for process in processes)

    def ensure_all(self) -> None:
        """Start everything that has ended by itself, and wait until a job is active."""
        self.cluster.ensure_running()
        self.ensure_active()
        if self.gateway is not None and not self.gateway.is_running:
            self.failures.append(f"the gateway ended by itself: {self.gateway.output[-1:]}")
            self.start_gateway()

    def start_gateway(self) -> None:
        """Start the gateway, again while the brokers are away: a start needs them."""
        assert self.gateway is not None
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while True:
            try:
                return self.gateway.start()
            except AssertionError:
                lacks_brokers = any(GATEWAY_NEEDS_BROKERS in line for line in self.gateway.output)
                if self.gateway.is_running or not lacks_brokers or time.monotonic() > deadline:
                    raise

    def note_end(self, job: CoordinatorProcess) -> None:
        """Note that a job has ended by itself, and why."""
        self.job_ends.append(job.output[-1] if job.output else "without a word")
        self.notes.append(f"the job ended by itself: {self.job_ends[-1]}")

    def start_job(self, job: CoordinatorProcess) -> None:
        """Start a job that does not run, again if it ends by itself: until it is active, or stands by."""
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while True:
            self.keep_output(job)
            job.launch()
            try:
                job.await_line("that it is ready or stands by", _is_up, ATTEMPT_SECONDS)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                self.note_end(job)
                job.kill()
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def keep_output(self, job: CoordinatorProcess) -> None:
        """Add a job's output to ``log``, before its next start forgets it."""
        if job.output:
            self.log += [f"---- job {self.jobs.index(job)}", *job.output]

    def await_take_over(self, former: CoordinatorProcess) -> float:
        """Wait until another job than the former one is active; returns the seconds that it took."""
        began = time.monotonic()
        others = [job for job in self.jobs if job is not former]
        wait_until(lambda: any(map(is_ready, others)), "a take-over", START_LIMIT_SECONDS, describe=self.tails)
        return time.monotonic() - began

    def tails(self) -> str:
        """The ends of the jobs' outputs."""
        return "\n".join(job.tail() for job in self.jobs)


def is_ready(job: CoordinatorProcess) -> bool:
    """Whether a job runs and has reported that it is ready."""
    return job.is_running and any(map(reports_ready, tuple(job.output)))


def _is_up(line: str) -> bool:
    return reports_ready(line) or "standby: the job on" in line


def tree(job: CoordinatorProcess) -> list[int]:
    """The process ids of a job."""
    return process_tree(job.pid)
