"""Many runs, one after the other, and their summary."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec
from pyspark.sql import SparkSession

from tests.cluster.with_store import ClusterWithStore
from tests.recovery.chaos.broken.defects import environment_of
from tests.recovery.chaos.clocks import NoCompiler, SteppedClock, build_library
from tests.recovery.chaos.cluster import one_broker, three_brokers
from tests.recovery.chaos.final_state import state_reader
from tests.recovery.chaos.needs import Need
from tests.recovery.chaos.plan import Plan
from tests.recovery.chaos.run import Run, Verdict

Report = Callable[[str], None]


class Summary(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of a campaign. faults: how often each was injected. skipped: by the reason. operations: by their kind
    and their end. job_ends: how often the job ended by itself, by its last line."""

    runs: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = {}
    skipped: dict[str, int] = {}
    job_ends: dict[str, int] = {}
    operations: dict[str, int] = {}
    journal_entries: int = 0
    transactions: int = 0
    outdated_answers: int = 0
    violations: int = 0
    failed: list[Verdict] = []
    """The runs with a violation, and those that could not be played to their end."""
    verdicts: list[Verdict] = []


class Campaign:
    """What the runs share; ends with its ``with`` block.

    kept: gets the files of runs that have failed. broken: a defect to plant in every job. on_cluster: whether the jobs
    run on a standalone cluster with an object store.
    """

    def __init__(self, kept: Path, report: Report, broken: str | None = None, *, on_cluster: bool = False) -> None:
        self._on_cluster = on_cluster
        self._spark_cluster: ClusterWithStore | None = None
        self._environment = {} if broken is None else environment_of(broken)
        self._kept = kept
        self._report = report
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.push(self._stack)
            self._folder = Path(
                self._stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-chaos-"))
            )
            self._library = self._built_library()
            self._report("starting a broker, and a Spark session that reads states")
            clock = None if self._library is None else SteppedClock(self._library, self._folder / "broker-clock")
            self._one = one_broker(self._folder / "kafka", clock)
            self._stack.callback(self._one.stop)
            if self._on_cluster:
                self._spark_cluster = self._stack.enter_context(ClusterWithStore(self._folder / "cluster"))
            self._spark: SparkSession = self._stack.enter_context(state_reader(self._folder))
            on_failure.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def play(self, plan: Plan) -> Verdict:
        """Play a run. If anything is wrong with it, its plan, history and logs are kept."""
        folder = self._folder / f"run-{plan.seed}"
        self._report(plan.describe())
        job_clock = None
        if Need.JOB_CLOCK in plan.needs and self._library is not None:
            job_clock = SteppedClock(self._library, self._folder / "job-clock")
        if Need.THREE_BROKERS in plan.needs:
            cluster = three_brokers(self._folder / f"kafka-{plan.seed}")
            try:
                verdict = Run(plan, cluster, folder, self._spark, job_clock, self._environment).play()
            finally:
                cluster.stop()
                shutil.rmtree(self._folder / f"kafka-{plan.seed}", ignore_errors=True)
        else:
            run = Run(plan, self._one, folder, self._spark, job_clock, self._environment, self._spark_cluster)
            verdict = run.play()
        self._keep(plan, verdict, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return verdict

    def _built_library(self) -> Path | None:
        try:
            return build_library(self._folder)
        except NoCompiler as reason:
            self._report(f"no clock is stepped: {reason}")
            return None

    def _keep(self, plan: Plan, verdict: Verdict, folder: Path) -> None:
        for line in verdict.faults:
            self._report(f"  {line}")
        for line in (*verdict.skipped, *verdict.notes):
            self._report(f"  note: {line}")
        self._report(
            f"  {verdict.seconds:.0f} s, {sum(verdict.operations.values())} lines of operations, "
            f"{verdict.journal_entries} journal entries: {'good' if verdict.is_good else 'NOT GOOD'}"
        )
        if verdict.is_good:
            return
        kept = self._kept / f"seed-{plan.seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for file in (*folder.glob("*.log"), *folder.glob("history.jsonl")):
            shutil.copy(file, kept)
        (kept / "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")
        (kept / "verdict.json").write_bytes(msgspec.json.format(msgspec.json.encode(verdict), indent=2) + b"\n")
        for line in verdict.violations:
            self._report(f"  violation: {line}")
        if verdict.failure is not None:
            self._report(f"  failure: {verdict.failure}")
        self._report(f"  kept: {kept}")


def summary(verdicts: Iterable[Verdict]) -> Summary:
    """Sum up the runs."""
    played = list(verdicts)
    operations: Counter[str] = Counter()
    for verdict in played:
        operations.update(verdict.operations)
    return Summary(
        runs=len(played),
        seconds=round(sum(verdict.seconds for verdict in played), 1),
        faults=_counted(line.partition(":")[0] for verdict in played for line in verdict.faults),
        skipped=_counted(line for verdict in played for line in verdict.skipped),
        job_ends=_counted(line for verdict in played for line in verdict.job_ends),
        operations=dict(sorted(operations.items())),
        journal_entries=sum(verdict.journal_entries for verdict in played),
        transactions=sum(verdict.transactions for verdict in played),
        outdated_answers=sum(verdict.outdated_answers for verdict in played),
        violations=sum(len(verdict.violations) for verdict in played),
        failed=[verdict for verdict in played if not verdict.is_good],
        verdicts=played,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
