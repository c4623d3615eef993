"""Take-overs: how long nobody answers when the active job is killed or stopped, with a standby and without one.

`make bench-takeover` keeps 10,000 groups and 200 members that send 500 heartbeats/s, through 60 kills and 20 stops of
the active job with a standby, and a few kills and stops of a job without one, which starts again at once.
"""

import json
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.lifecycle.phases import HAND_OVER, TAKE_OVER, Phases, read_phases
from tests.bench.environment import machine, versions
from tests.bench.events import Events, PreparedRequest
from tests.bench.latency import Timings, percentile
from tests.bench.outages.live_load import OPTIONS, form, live_load
from tests.object_store.server import S3Server
from tests.support.coordinator_process import CoordinatorProcess

BUCKET = "takeover"

AFTER_SECONDS, AFTER_SECONDS_IN_STORE = 20.0, 40.0
BEFORE_SECONDS, FIRST_SECONDS = 20.0, 5.0
STANDBY_LIMIT_SECONDS = 150.0

Fault = Literal["kill", "stop"]
Report = Callable[[str], None]


class TakeOver(msgspec.Struct, frozen=True, kw_only=True):
    """What clients saw of one fault. Times in seconds, latencies in milliseconds.

    first_answer: from the fault to the first answer after the longest time without one. p50_before: of the 20 s before
    the fault; p50_after: of the requests of the first 5 s after the first answer. failed: requests without an answer,
    or with an error. phases: what the jobs report of the time until the first answer, in milliseconds; without a
    standby, nothing.
    """

    fault: Fault
    has_standby: bool
    first_answer: float
    longest_silence: float
    p50_before: float
    p50_after: float
    failed: int
    phases: dict[str, int] = {}


def seen(timings: Timings, fault_at: float, fault: Fault, *, has_standby: bool) -> TakeOver:
    """What clients saw of a fault at ``fault_at`` (seconds from the first request)."""
    received = sorted(due + latency for due, latency in zip(timings.due, timings.latencies, strict=True))
    # A silence that had ended before the fault is none of its effects.
    silences = [(after - before, after) for before, after in pairwise(received) if after > fault_at]
    longest, again_at = max(silences)
    return TakeOver(
        fault=fault,
        has_standby=has_standby,
        first_answer=round(again_at - fault_at, 2),
        longest_silence=round(longest, 2),
        p50_before=_p50(timings, fault_at - BEFORE_SECONDS, fault_at - 1),
        p50_after=_p50(timings, again_at, again_at + FIRST_SECONDS),
        failed=timings.failed,
    )


def _p50(timings: Timings, since: float, until: float) -> float:
    """The median latency of the requests that were due in the interval, in milliseconds; 0 if there was none."""
    latencies = [one for due, one in zip(timings.due, timings.latencies, strict=True) if since <= due < until]
    return round(1000 * statistics.median(latencies), 1) if latencies else 0.0


class Jobs:
    """Jobs on one checkpoint, one of which is active. It is in ``store``, or in the folder."""

    def __init__(self, broker: EmbeddedBroker, folder: Path, stack: ExitStack, store: S3Server | None) -> None:
        self._broker = broker
        self._folder = folder
        self._stack = stack
        self._options = {**OPTIONS, "checkpoint": str(folder / "checkpoint"), "standby": True}
        if store is not None:
            self._options |= {"checkpoint": f"s3a://{BUCKET}/checkpoint", **store.options}
        self.seconds_after = AFTER_SECONDS if store is None else AFTER_SECONDS_IN_STORE
        """How long requests are sent after a fault."""
        self._started = 0
        self.active = self._new()
        self.active.start()

    def launch_standby(self) -> CoordinatorProcess:
        """Start a job that stands by."""
        standby = self._new()
        standby.launch()
        standby.await_line("that it stands by", lambda line: "standby: the job on" in line, STANDBY_LIMIT_SECONDS)
        return standby

    def _new(self) -> CoordinatorProcess:
        self._started += 1
        job = CoordinatorProcess(
            self._broker.bootstrap_servers, self._folder / str(self._started), self._options, defaults={}
        )
        self._stack.callback(job.kill)
        return job


def reported_phases(stopped: Sequence[str], standby: Sequence[str], fault_at: datetime) -> dict[str, int]:
    """The phases from a fault on (ms), as the lines of the two jobs' output tell them."""
    found = {"hand-over": _phases(stopped, HAND_OVER), "take-over": _phases(standby, TAKE_OVER)}
    told = {what: phases for what, phases in found.items() if phases is not None}
    durations, last = dict[str, int](), fault_at
    for what, phases in told.items():
        durations[f"until {what}"] = round(1000 * (phases.began_at - last).total_seconds())
        durations |= phases.durations
        last = phases.ended_at
    return durations


def _phases(output: Sequence[str], what: str) -> Phases | None:
    messages = (json.loads(line)["message"] for line in output if line.startswith("{"))
    return next((phases for phases in map(read_phases, messages) if phases and phases.what == what), None)


def cycle(
    jobs: Jobs, events: Events, requests: Sequence[PreparedRequest], fault: Fault, warm: float, *, has_standby: bool
) -> TakeOver:
    """Send requests for a while, and kill or stop the active job after ``warm`` seconds."""
    with live_load(events, requests, warm + jobs.seconds_after) as (began, timings):
        standby = jobs.launch_standby() if has_standby else None
        time.sleep(max(0.0, began + warm - time.perf_counter()))
        fault_at, fault_time = time.perf_counter() - began, datetime.now(UTC)
        if fault == "kill":
            jobs.active.kill()
        else:
            jobs.active.terminate()
        if standby is None:
            jobs.active.wait()
            jobs.active.launch()
    found = seen(timings[0], fault_at, fault, has_standby=has_standby)
    if standby is None:
        return found
    jobs.active.wait()
    stopped, jobs.active = jobs.active, standby
    return msgspec.structs.replace(found, phases=reported_phases(stopped.output, standby.output, fault_time))


def lines(takeovers: Sequence[TakeOver]) -> Iterator[str]:
    """A line for each kind of fault."""
    kinds = sorted({(one.has_standby, one.fault) for one in takeovers}, reverse=True)
    for has_standby, fault in kinds:
        of_kind = [one for one in takeovers if (one.has_standby, one.fault) == (has_standby, fault)]
        first = [one.first_answer for one in of_kind]
        ratios = [one.p50_after / one.p50_before for one in of_kind if one.p50_before]
        silences = [one.longest_silence for one in of_kind]
        yield (
            f"{fault} {'with' if has_standby else 'without'} a standby, {len(of_kind)} times: first answer after "
            f"{statistics.median(first):.2f} s (p99 {percentile(first, 99):.2f} s), longest silence "
            f"{max(silences):.2f} s, p50 of the first {FIRST_SECONDS:g} s {statistics.median(ratios):.1f} times that "
            f"before (at most {max(ratios):.1f}), {sum(one.failed for one in of_kind)} requests failed"
        )
        yield from _phase_lines(of_kind)


def _phase_lines(takeovers: Sequence[TakeOver]) -> Iterator[str]:
    """A line for each phase that the jobs have reported: how long it took, and how long in the slowest take-over."""
    slowest = max(takeovers, key=lambda one: one.first_answer)
    for phase in dict.fromkeys(phase for one in takeovers for phase in one.phases):
        durations = [one.phases[phase] for one in takeovers if phase in one.phases]
        yield (
            f"    {phase}: {statistics.median(durations):.0f} ms (at most {max(durations)} ms), in the slowest one "
            f"{slowest.phases.get(phase, 0)} ms"
        )


def started_store(folder: Path, stack: ExitStack) -> S3Server:
    """An S3 server with a bucket, which ends with ``stack``."""
    (folder / "store").mkdir()
    store = stack.enter_context(S3Server(folder / "store"))
    store.start()
    store.bucket(BUCKET)
    return store


def takeover(
    kills: Annotated[int, typer.Option(help="Kills of the active job with a standby.")] = 60,
    stops: Annotated[int, typer.Option(help="Stops of the active job with a standby.")] = 20,
    alone: Annotated[int, typer.Option(help="Kills, and stops, without a standby.")] = 3,
    groups: Annotated[int, typer.Option(help="Groups that send nothing.")] = 10_000,
    warm: Annotated[
        float, typer.Option(help="The age of a standby at the fault, s; it needs some 10 s to start.")
    ] = 60,
    after: Annotated[float | None, typer.Option(help="How long requests are sent after the fault, s.")] = None,
    in_store: Annotated[
        bool, typer.Option("--in-store", help="The jobs share an S3 server instead of a folder, as two hosts would.")
    ] = False,
) -> None:
    """Measure take-overs, print a line for each kind, and the figures as JSON."""
    # As an exception, SIGTERM ends the broker and the jobs, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[TakeOver] = []
    kill: tuple[Fault, bool] = ("kill", True)
    stop: tuple[Fault, bool] = ("stop", True)
    plan = [kill] * kills + [stop] * stops + [(kill[0], False), (stop[0], False)] * alone
    with (
        tempfile.TemporaryDirectory(prefix="group-coordinator-takeover-") as folder,
        EmbeddedBroker() as broker,
        ExitStack() as stack,
    ):
        store = started_store(Path(folder), stack) if in_store else None
        jobs = Jobs(broker, Path(folder), stack, store)
        jobs.seconds_after = after or jobs.seconds_after
        topics = jobs.active.topics
        with Events(broker.bootstrap_servers, topics.requests, topics.responses) as events:
            requests = form(events, groups)
            for number, (fault, has_standby) in enumerate(plan, 1):
                one = cycle(jobs, events, requests, fault, warm, has_standby=has_standby)
                found.append(one)
                typer.echo(f"{number} of {len(plan)}: {msgspec.json.encode(one).decode()}", err=True)
    for line in lines(found):
        typer.echo(line, err=True)
    place = "store" if in_store else "folder"
    result = {"machine": machine(), "versions": versions(), "checkpoint": place, "takeovers": found}
    typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


if __name__ == "__main__":
    typer.run(takeover)
