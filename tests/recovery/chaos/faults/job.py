"""Faults of the job: its driver, its workers and executors, and what an operator does at a restart."""

import signal
import time
from collections.abc import Callable
from functools import partial
from random import Random

from streaming.job.checkpoints.checkpoint import STARTS_FOLDER
from streaming.job.spark_internals.python_worker.worker_choice import ARROW
from tests.bench.usage import CoordinatorProcesses, find_coordinator
from tests.recovery.chaos.faults.fault import Inject, NotInjected
from tests.recovery.chaos.kill_points import Point, caught_at, see
from tests.recovery.chaos.stage import Stage, tree
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.processes import descendants, is_running, parent, paused, signal_each, stat_fields
from tests.support.request_events import commit, dumped
from tests.support.waiting import wait_until

LONGEST_AWAY_SECONDS = 3.0
PAST_TIME_OUTS_SECONDS = (7.0, 13.0)
"""Longer than a session (6 s) and a lease (1.5 s), some longer than a transaction of the election may take (10 s)."""

POINT_LIMIT_SECONDS = 15.0
NOTICE_SECONDS = 4.0
END_LIMIT_SECONDS = 60.0
FLOOD_GROUPS = 50
CHANGES: dict[str, tuple[object, ...]] = {
    "trigger-interval-ms": (0, 50, 300, 1_000),
    "cpu-budget": (0, 0.3, 8),
    "group.initial.rebalance.delay.ms": (0, 1_500, 3_000),
    "max-requests-per-batch": (200, 1_000, 50_000),
    "python-worker": (ARROW, "stock"),
    "kafka.max.poll.records": (10, 500),
}


def kill_driver(stage: Stage, chance: Random) -> str:
    """``kill -9`` of the active job, at random."""
    job = stage.active
    job.kill()
    return f"kill -9 of the job; {_back(stage, job, chance)}"


def stop_driver(stage: Stage, chance: Random) -> str:
    """SIGTERM for the active job."""
    job = stage.active
    job.stop()
    return f"SIGTERM for the job; {_back(stage, job, chance)}"


def pause_driver(stage: Stage, chance: Random) -> str:
    """SIGSTOP of the active job, past every time-out, and SIGCONT."""
    job, seconds = stage.active, chance.uniform(*PAST_TIME_OUTS_SECONDS)
    with paused(tree(job)):
        time.sleep(seconds)
    return f"SIGSTOP of the job for {seconds:.1f} s"


def force_two_actives(stage: Stage, chance: Random) -> str:
    """The active job is stopped in a batch and past its lease, the standby takes its place, and the first one goes on.

    It then writes the rows of its batch, which the other job has written before.
    """
    former = stage.active
    _stop_at(Point.PLANNED, stage, former)
    with paused(tree(former)):
        took = stage.await_take_over(former)
        time.sleep(chance.uniform(0, LONGEST_AWAY_SECONDS))
    former.wait(END_LIMIT_SECONDS)
    stage.start_job(former)
    return f"SIGSTOP of the active job until {took:.1f} s later another one was active, then SIGCONT: it ended"


def kill_standby(stage: Stage, chance: Random) -> str:
    """``kill -9`` of the job that stands by."""
    job = stage.standby
    job.kill()
    time.sleep(chance.uniform(0, LONGEST_AWAY_SECONDS))
    stage.start_job(job)
    return "kill -9 of the standby"


def kill_at(point: Point, then: Callable[[Stage, CoordinatorProcess, Random], str] = lambda *_: "") -> Inject:
    """``kill -9`` of the active job at a chosen moment of a batch; ``then`` is done before the job starts again."""

    def inject(stage: Stage, chance: Random) -> str:
        time.sleep(chance.uniform(0, 1))
        job = stage.active
        _stop_at(point, stage, job)
        batch = see(stage.checkpoint).planned
        job.kill()
        further = then(stage, job, chance)
        return f"kill -9 of the job in batch {batch}: {point.value}{further}; {_back(stage, job, chance)}"

    return inject


def _stop_at(point: Point, stage: Stage, job: CoordinatorProcess) -> None:
    """SIGSTOP of a job's JVM at such a moment of a batch. Raises NotInjected."""
    jvm = _processes(job).jvm

    def stop() -> None:
        signal_each([jvm], signal.SIGSTOP)
        wait_until(lambda: stat_fields(jvm)[0] == "T", "the JVM is stopped", pause=0.0002)

    if not caught_at(point, stage.checkpoint, stop, lambda: signal_each([jvm], signal.SIGCONT), POINT_LIMIT_SECONDS):
        raise NotInjected(f"not within {POINT_LIMIT_SECONDS:g} s: {point.value}")


def _processes(job: CoordinatorProcess) -> CoordinatorProcesses:
    """The processes of a job. Raises NotInjected if it has none, as one that ends because of an earlier fault."""
    try:
        return find_coordinator(job.pid)
    except LookupError as failure:
        raise NotInjected(f"the job is about to end: {failure}") from failure


def kill_python_worker(stage: Stage, chance: Random) -> str:
    """``kill -9`` of a Python worker."""
    job = stage.active
    if stage.spark_cluster is None:
        python = _processes(job).by_role()["Python workers"]
    else:
        python = [pid for executor in stage.executors for pid in descendants(executor)]
    workers = [pid for pid in python if parent(pid) in python]
    if not workers:
        raise NotInjected("the job has no Python worker now")
    signal_each([chance.choice(workers)], signal.SIGKILL)
    _notice(lambda: not job.is_running)
    return "kill -9 of a Python worker"


def kill_executor(stage: Stage, chance: Random) -> str:
    """``kill -9`` of an executor; its master starts another one."""
    job, executors = stage.active, stage.executors
    if not executors:
        raise NotInjected("the job has no executor now")
    killed = chance.choice(executors)
    signal_each([killed], signal.SIGKILL)

    def is_replaced() -> bool:
        return not job.is_running or any(pid != killed and is_running(pid) for pid in stage.executors)

    wait_until(is_replaced, "another executor")
    return "kill -9 of an executor"


def kill_worker(stage: Stage, chance: Random) -> str:
    """``kill -9`` of a worker of the cluster with its executors; it joins again after a while."""
    assert stage.spark_cluster is not None
    cluster = stage.spark_cluster.spark
    killed = chance.choice(cluster.workers)
    killed.kill()
    time.sleep(chance.uniform(0, LONGEST_AWAY_SECONDS))
    cluster.start_workers(killed)
    return f"kill -9 of {killed.name} and its executors"


def change_options(stage: Stage, chance: Random) -> str:
    """The job is killed or stopped, and started with other options."""
    job = stage.active
    changed = {key: chance.choice(CHANGES[key]) for key in chance.sample(sorted(CHANGES), chance.randint(1, 3))}
    for each in stage.jobs:
        each.options |= changed
    job.kill() if chance.random() < 0.5 else job.stop()
    return f"restart with {changed}; {_back(stage, job, chance)}"


def flood_while_down(stage: Stage, chance: Random) -> str:
    """The job is killed, and finds many requests when it starts."""
    job, count = stage.active, chance.randint(2_000, 20_000)
    for each in stage.jobs:
        each.kill()
    for number in range(count):
        group = f"flood-{number % FLOOD_GROUPS}"
        stage.append(group, dumped(commit(group, number)))
    for each in (job, *(other for other in stage.jobs if other is not job)):
        stage.start_job(each)
    return f"kill -9 of the job; {count} requests waited at its start"


# ---- parts of them ---------------------------------------------------------------------------------------------


def _back(stage: Stage, job: CoordinatorProcess, chance: Random) -> str:
    """Start a job that has ended, when another one has taken its place, or after a while."""
    began = time.monotonic()
    if len(stage.jobs) > 1:
        took = stage.await_take_over(job)
        stage.start_job(job)
        return f"the standby was active {took:.1f} s later"
    time.sleep(chance.uniform(0, LONGEST_AWAY_SECONDS))
    stage.start_job(job)
    return f"ready again {time.monotonic() - began:.1f} s later"


def die_at_next_starts(stage: Stage, job: CoordinatorProcess, chance: Random) -> str:
    """Start the job and kill it as soon as it has recorded its start, right before its query; some times over."""
    times = chance.randint(2, 4)
    for _ in range(times):
        recorded = partial(_has_recorded_start, stage, _starts(stage))
        job.launch()
        wait_until(recorded, "a recorded start", END_LIMIT_SECONDS, describe=job.tail, pause=0.001)
        job.kill()
    return f", and at each of its next {times} starts"


def _has_recorded_start(stage: Stage, before: list[str]) -> bool:
    return _starts(stage) != before


def _starts(stage: Stage) -> list[str]:
    return sorted(path.name for path in (stage.checkpoint / STARTS_FOLDER).glob("[0-9]*"))


def _notice(has_noticed: Callable[[], bool]) -> None:
    """Give the job a while to notice; it need not."""
    deadline = time.monotonic() + NOTICE_SECONDS
    while not has_noticed() and time.monotonic() < deadline:
        time.sleep(0.05)
