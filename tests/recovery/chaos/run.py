"""Plays a run: clients live, faults happen, everything becomes calm, and the history is judged."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random

import msgspec
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from streaming.job.state_stores import StateStore
from tests.cluster.with_store import ClusterWithStore
from tests.recovery.chaos.broken.defects import is_epoch_checked
from tests.recovery.chaos.clocks import SteppedClock
from tests.recovery.chaos.cluster import Cluster
from tests.recovery.chaos.disk import NoMount
from tests.recovery.chaos.faults.catalogue import FAULTS, unexpected_ends
from tests.recovery.chaos.faults.fault import NotInjected, NotPossibleHere, Target
from tests.recovery.chaos.final_state import journal_of, lost_commits, snapshots_in
from tests.recovery.chaos.live import LiveNetwork, LiveWorld
from tests.recovery.chaos.plan import Plan, PlannedFault, PlannedGroup
from tests.recovery.chaos.stage import Stage
from tests.recovery.chaos.transactional import TransactionalMember, living
from tests.recovery.checker import Function, Recorder, check, read
from tests.recovery.recorded.consumer import RecordedConsumer
from tests.recovery.recorded.population import Population
from tests.recovery.recorded.reconciling_consumer import ReconcilingConsumer
from tests.recovery.recorded.surroundings import GroupPlan
from tests.recovery.recorded.visitors import Administrator, Newcomer, Observer, Visitor
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS, wait_until

STABLE_WITHIN_MS = 40_000
SETTLE_SECONDS = 55.0
"""How long the clients may take to be assigned after the last fault: the checker's bound, which counts from the first
join of a client that comes in the place of one that has gone."""

REQUEST_TIMEOUT_MS = 12_000
JOIN_TIMEOUT_MS = 20_000
DISTURBANCE_MS = 4_000
PAUSES_MS = (500, 2_000, 7_000)
FAULT_LIMIT_SECONDS = 400.0
LOOK_SECONDS = 0.5
LATE_ENDS = 2
CALM_SECONDS = 1.5
ANSWER_SECONDS = 20.0
MEMBERS_WORK_WITHIN_SECONDS = 150.0
"""A rebalance of the transactional members may wait for the session of a member that has come back under another id."""

SEEN_IN_EVERY_RUN = ("join ok", "heartbeat ok", "commit ok", "fetch ok")
SEEN_OF_CONSUMER_MEMBERS = "consumer-heartbeat ok"

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PARTITIONS = 3


class Verdict(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of a run.

    skipped: faults that were not injected, and why. is_impossible_here: because the machine cannot mount a disk, or has
    no C compiler.
    transactions: those that were committed. outdated_answers: those of a job in whose place another one had answered.
    client_failures: what librdkafka reported to transactional members.
    failure: why the run could not be played to its end, or what did not work again after the faults.
    """

    seed: int
    plan: str
    seconds: float = 0.0
    faults: list[str] = []
    skipped: list[str] = []
    is_impossible_here: bool = False
    job_ends: list[str] = []
    notes: list[str] = []
    operations: dict[str, int] = {}
    journal_entries: int = 0
    transactions: int = 0
    outdated_answers: int = 0
    client_failures: list[str] = []
    violations: list[str] = []
    failure: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return self.failure is None and not self.violations


class Run:
    """One run of a plan, with its files in ``folder``."""

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        folder: Path,
        spark: SparkSession,
        job_clock: SteppedClock | None,
        environment: Mapping[str, str],
        spark_cluster: ClusterWithStore | None = None,
    ) -> None:
        self._spark_cluster = spark_cluster
        self.verdict = Verdict(seed=plan.seed, plan=plan.describe())
        self.history = folder / "history.jsonl"
        self._plan = plan
        self._cluster = cluster
        self._folder = folder
        self._spark = spark
        self._job_clock = job_clock
        self._environment = environment
        self._is_calm = False
        self._lock = threading.Lock()
        self._failures: list[str] = []

    def play(self) -> Verdict:
        """Play the run and judge it. Whatever goes wrong is in the verdict."""
        began = time.monotonic()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self.history.open("wb") as file:
                self._play(Recorder(file))
            self._judge()
        except NoMount as reason:
            self.verdict.skipped.append(f"the run: {reason}")
            self.verdict.is_impossible_here = True
        except Exception as failure:
            self.verdict.failure = "\n".join([f"{type(failure).__name__}: {failure}", *self._failures])
        self.verdict.seconds = round(time.monotonic() - began, 1)
        return self.verdict

    def _play(self, recorder: Recorder) -> None:
        plan = self._plan
        self._cluster.ensure_running()
        options: dict[str, object] = {"state-store": plan.state_store, "state-partitions": plan.state_partitions}
        with Stage(
            self._cluster,
            self._folder,
            plan.needs,
            options,
            self._job_clock,
            self._environment,
            self._spark_cluster,
        ) as stage:
            try:
                with self._clients(stage, recorder) as (populations, observers, members):
                    settled = partial(_are_settled, populations, members)
                    wait_until(settled, "groups", SETTLE_SECONDS, describe=partial(_unsettled, populations))
                    if not any(FAULTS[fault.name].spares_clients for fault in plan.faults):
                        for population in populations:
                            self._world.call(population.disturb)
                    self._inject(stage, recorder)
                    self._await_calm(stage, recorder, populations, members)
                    self._read_last(observers)
                    self.verdict.client_failures += [
                        f"{member.name}: {failure}" for member in members for failure in member.failures
                    ]
                    self.verdict.transactions = sum(member.committed for member in members)
                self._end(stage, recorder)
            finally:
                self._note(stage)
            self._delete_topics(stage)

    # ---- clients -------------------------------------------------------------------------------------------------

    @contextmanager
    def _clients(
        self, stage: Stage, recorder: Recorder
    ) -> Iterator[tuple[list[Population], list[Observer], list[TransactionalMember]]]:
        plan, servers = self._plan, self._cluster.bootstrap_servers
        world = LiveWorld(recorder, plan.seed)
        checks_epoch = is_epoch_checked(self._environment)
        network = LiveNetwork(world, servers, stage.topics, checks_epoch=checks_epoch)
        with world, network, ExitStack() as ending:
            stage.append, stage.cutting_off_half = network.append, network.cutting_off_half
            populations: list[Population] = []
            visitors: list[Visitor] = []

            def begin(group: PlannedGroup) -> None:
                shared = _group_plan(group)
                populations.append(
                    Population(
                        network,
                        shared,
                        group.members,
                        group.static_members,
                        lambda: self._is_calm,
                        disturbance_ms=DISTURBANCE_MS,
                        pauses_ms=PAUSES_MS,
                        kinds=(ReconcilingConsumer if group.is_reconciling else RecordedConsumer,),
                        has_all_partitions=group.is_reconciling,
                    )
                )
                visitors.extend([Observer(network, shared), Administrator(network, shared)])

            def end() -> None:
                for visitor in visitors:
                    visitor.stop()
                for population in populations:
                    population.stop()

            for group in plan.groups:
                world.call(partial(begin, group))
            world.call(lambda: visitors.append(Newcomer(network, GroupPlan("newcomers", "orders", 1))))
            ending.callback(world.call, end)
            members = self._transactional_members(stage, recorder)
            if members:
                world.call(lambda: visitors.append(Observer(network, _transactional_plan(stage))))
            ending.enter_context(living(members, self._failures))
            observers = [visitor for visitor in visitors if isinstance(visitor, Observer)]
            self._world, self._network = world, network
            yield populations, observers, members
        self._failures += world.failures
        self.verdict.outdated_answers = network.outdated_answers

    def _transactional_members(self, stage: Stage, recorder: Recorder) -> list[TransactionalMember]:
        if not self._plan.transactional_members:
            return []
        assert stage.gateway is not None
        topic, output = _transactional_plan(stage).topic, f"{stage.topics.prefix}shipments"
        create_topic(self._cluster.bootstrap_servers, topic, TRANSACTIONAL_PARTITIONS)
        create_topic(self._cluster.bootstrap_servers, output)
        return [
            TransactionalMember(
                recorder,
                stage.gateway.bootstrap_servers,
                TRANSACTIONAL,
                topic,
                output,
                f"{TRANSACTIONAL}/{number}",
                self._plan.seed + number,
            )
            for number in range(self._plan.transactional_members)
        ]

    # ---- faults --------------------------------------------------------------------------------------------------

    def _inject(self, stage: Stage, recorder: Recorder) -> None:
        """Inject the faults, those of different targets at the same time.

        Meanwhile a job that ends by itself, as after a full disk, is started again, unless a fault is at work on it.
        """
        locks = {target: threading.Lock() for target in Target}
        began = time.monotonic()
        threads = [
            threading.Thread(target=self._inject_one, args=(stage, recorder, fault, began, locks), daemon=True)
            for fault in self._plan.faults
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            waited = time.monotonic() - began
            assert waited < FAULT_LIMIT_SECONDS, f"a fault has not ended within {waited:.0f} s\n{stage.tails()}"
            if locks[Target.JOB].acquire(blocking=False):
                try:
                    stage.start_ended_jobs()
                finally:
                    locks[Target.JOB].release()
            time.sleep(LOOK_SECONDS)
        assert not self._failures, "\n".join(self._failures)

    def _inject_one(
        self,
        stage: Stage,
        recorder: Recorder,
        planned: PlannedFault,
        began: float,
        locks: dict[Target, threading.Lock],
    ) -> None:
        fault = FAULTS[planned.name]
        time.sleep(max(0.0, began + planned.at_ms / 1000 - time.monotonic()))
        with locks[fault.target]:
            operation = recorder.invoke("nemesis", Function.FAULT, "", note=fault.name)
            try:
                done = fault.inject(stage, Random(planned.seed))
                self.verdict.faults.append(f"{fault.name}: {done}")
            except NotInjected as reason:
                self.verdict.is_impossible_here |= isinstance(reason, NotPossibleHere)
                done = f"not injected: {reason}"
                self.verdict.skipped.append(f"{fault.name}: {reason}")
            except Exception as failure:
                done = f"failed: {failure!r}"
                self._failures.append(f"{fault.name}: {failure}")
            operation.ok(note=f"{fault.name}: {done}")

    # ---- the end -------------------------------------------------------------------------------------------------

    def _await_calm(
        self,
        stage: Stage,
        recorder: Recorder,
        populations: Sequence[Population],
        members: Sequence[TransactionalMember],
    ) -> None:
        """Wait until all clients are assigned and each has had an answer to what it sent after the last fault.

        A job may end a while after its fault; then the wait begins again with its start.
        """
        for _ in range(1 + LATE_ENDS):
            stage.ensure_all()
            self._is_calm = True
            recorder.note("nemesis", Function.FAULT, "", note="the faults are over")
            if self._has_settled(stage, populations, members):
                time.sleep(CALM_SECONDS)
                return
        self._failures.append(f"{1 + LATE_ENDS} times, a process ended after the last fault")

    def _has_settled(
        self, stage: Stage, populations: Sequence[Population], members: Sequence[TransactionalMember]
    ) -> bool:
        """Wait for the clients; returns False as soon as a process has ended. Notes what has not settled in time."""
        began_ms, began = self._world.now, time.monotonic()

        def have_settled() -> bool:
            return all(each.is_settled and each.has_been_accepted_since(began_ms) for each in populations)

        def have_worked() -> bool:
            return all(member.has_worked_since(began) for member in members)

        is_over = _within(SETTLE_SECONDS, lambda: stage.lacks_process or have_settled())
        if stage.lacks_process:
            return False
        if not is_over:
            self._failures.append(
                f"{SETTLE_SECONDS:g} s after the last fault, not all clients were assigned and had a heartbeat "
                f"accepted: {_unsettled(populations)}"
            )
        if not _within(began + MEMBERS_WORK_WITHIN_SECONDS - time.monotonic(), have_worked):
            idle = "; ".join(member.describe() for member in members if not member.has_worked_since(began))
            self._failures.append(
                f"no transaction or no fetch {MEMBERS_WORK_WITHIN_SECONDS:g} s after the fault: {idle}"
            )
        return True

    def _read_last(self, observers: Sequence[Observer]) -> None:
        """Read all offsets once more, and wait for the answers. Only they show that acknowledged commits were kept."""
        for observer in observers:
            self._world.call(observer.stop)
            self._world.call(observer.read)
        deadline = time.monotonic() + ANSWER_SECONDS
        while unread := [observer for observer in observers if not observer.is_up_to_date]:
            if time.monotonic() > deadline:
                groups = ", ".join(observer.describe() for observer in unread)
                self._failures.append(f"the last reads had no answer: {groups}")
                return
            time.sleep(0.05)

    def _end(self, stage: Stage, recorder: Recorder) -> None:
        """Stop the processes, and add the journal and the groups to the history."""
        if stage.gateway is not None:
            stage.gateway.stop()
        for job in reversed(stage.jobs):
            if job.is_running and (code := job.stop()) != 0:
                self.verdict.notes.append(f"the job ended with {code} when it was stopped: {job.output[-1]}")
        journal = journal_of(self._cluster.bootstrap_servers, stage.topics)
        store: StateStore = "rocksdb" if self._plan.state_store == "rocksdb" else "memory"
        snapshots = snapshots_in(self._spark, stage.checkpoint, store)
        names = [group.name for group in self._plan.groups]
        recorder.end(journal, dict.fromkeys(names) | snapshots)
        if not journal:
            self._failures.append("the journal is empty")
        self._failures += lost_commits(self._network.delivered, snapshots)
        self.verdict.journal_entries = len(journal)

    def _note(self, stage: Stage) -> None:
        self.verdict.job_ends += stage.job_ends
        unexpected = unexpected_ends((fault.name for fault in self._plan.faults), stage.job_ends)
        self._failures += [f"the job ended by itself, and no fault explains it: {line}" for line in unexpected]
        self._failures += stage.failures
        self.verdict.notes += stage.notes
        for job in stage.jobs:
            stage.keep_output(job)
        (self._folder / "jobs.log").write_text("\n".join(stage.log))
        if stage.gateway is not None:
            (self._folder / "gateway.log").write_text("\n".join(stage.gateway.output))

    def _delete_topics(self, stage: Stage) -> None:
        """Leave nothing on the brokers for the next run to carry."""
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap_servers, "log_level": 0})
        names = [
            name for name in admin.list_topics(timeout=LIMIT_SECONDS).topics if name.startswith(stage.topics.prefix)
        ]
        for deleted in admin.delete_topics(names).values():
            deleted.result(LIMIT_SECONDS)

    def _judge(self) -> None:
        with self.history.open("rb") as lines:
            run = read(lines)
        violations = check(run.events, run.journal, run.states, stable_within_ms=STABLE_WITHIN_MS)
        self.verdict.violations = [str(violation) for violation in violations]
        for event in run.events:
            if event.client != "nemesis":
                key = f"{event.f.value} {event.kind.value}"
                self.verdict.operations[key] = self.verdict.operations.get(key, 0) + 1
        if self._failures:
            self.verdict.failure = "\n".join(self._failures)
        elif not all(map(self.verdict.operations.get, self._expected_operations())):
            self.verdict.failure = f"nothing was seen: {self.verdict.operations}"

    def _expected_operations(self) -> list[str]:
        has_consumer_members = any(group.is_reconciling for group in self._plan.groups)
        return [*SEEN_IN_EVERY_RUN, *([SEEN_OF_CONSUMER_MEMBERS] if has_consumer_members else [])]


def _group_plan(group: PlannedGroup) -> GroupPlan:
    return GroupPlan(
        group.name,
        "orders",
        group.partitions,
        is_cooperative=group.is_cooperative,
        rebalance_ms=group.rebalance_ms,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        join_timeout_ms=JOIN_TIMEOUT_MS,
    )


def _transactional_plan(stage: Stage) -> GroupPlan:
    topic = f"{stage.topics.prefix}orders"
    return GroupPlan(TRANSACTIONAL, topic, TRANSACTIONAL_PARTITIONS, request_timeout_ms=REQUEST_TIMEOUT_MS)


def _are_settled(populations: Sequence[Population], members: Sequence[TransactionalMember]) -> bool:
    # One of two transactional members may have joined alone first; both have partitions in the end.
    has_started = all(member.has_partitions for member in members)
    return has_started and all(population.is_settled for population in populations)


def _unsettled(populations: Sequence[Population]) -> str:
    return "; ".join(population.describe() for population in populations)


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Wait until something holds; returns whether it does."""
    deadline = time.monotonic() + seconds
    while not (is_true := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_true
