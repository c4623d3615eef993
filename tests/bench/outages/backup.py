"""What a backup costs the clients of a running job: `make bench-backup`.

A job with many groups answers the heartbeats of live members, while its checkpoint is copied again and again, each time
in full.
"""

import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import machine, versions
from tests.bench.events import Events
from tests.bench.latency import Latency, Timings, summary
from tests.bench.outages.checkpoints import timed
from tests.bench.outages.live_load import OPTIONS, form, live_load
from tests.support.coordinator_process import CoordinatorProcess

PAUSE_SECONDS, LONGEST_BACKUP_SECONDS = 3.0, 10.0

Span = tuple[float, float]
"""Begin and end, in seconds from the first request."""


class Backups(msgspec.Struct, frozen=True, kw_only=True):
    """The latency of the requests that were due before the backups, and during one of them."""

    groups: int
    backup_seconds: list[float]
    before: Latency
    during: Latency


def latency_in(timings: Timings, spans: Sequence[Span]) -> Latency:
    """The latency of the requests that were due within one of the spans."""
    return summary(
        [
            latency
            for due, latency in zip(timings.due, timings.latencies, strict=True)
            if any(begin <= due < end for begin, end in spans)
        ]
    )


def backup(
    groups: Annotated[int, typer.Option(help="Groups that send nothing.")] = 100_000,
    backups: Annotated[int, typer.Option(help="How many backups.")] = 10,
    warm_up: Annotated[float, typer.Option(help="How long the job is under load before it is measured, s.")] = 30.0,
    before: Annotated[float, typer.Option(help="How long it is measured before the first backup, s.")] = 30.0,
) -> None:
    """Measure, and print the figures as JSON."""
    # As an exception, SIGTERM ends the broker and the job, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="group-coordinator-backup-") as name, EmbeddedBroker() as broker:
        folder = Path(name)
        options = {**OPTIONS, "checkpoint": str(folder / "checkpoint")}
        with CoordinatorProcess(broker.bootstrap_servers, folder / "job", options, defaults={}) as job:
            job.start()
            with Events(broker.bootstrap_servers, job.topics.requests, job.topics.responses) as events:
                requests = form(events, groups)
                seconds = warm_up + before + backups * (PAUSE_SECONDS + LONGEST_BACKUP_SECONDS)
                spans: list[Span] = []
                with live_load(events, requests, seconds) as (began, timings):
                    time.sleep(warm_up + before)
                    for number in range(backups):
                        begin = time.perf_counter() - began
                        timed(["backup", folder / "checkpoint", folder / f"backups-{number}"])
                        spans.append((begin, time.perf_counter() - began))
                        time.sleep(PAUSE_SECONDS)
    found = Backups(
        groups=groups,
        backup_seconds=[round(end - begin, 1) for begin, end in spans],
        before=latency_in(timings[0], [(warm_up, warm_up + before)]),
        during=latency_in(timings[0], spans),
    )
    typer.echo(
        f"{backups} backups of {statistics.median(found.backup_seconds):.1f} s: p50 {found.before.p50_ms} ms before, "
        f"{found.during.p50_ms} ms during them; p99 {found.before.p99_ms} ms and {found.during.p99_ms} ms "
        f"({found.during.p99_ms / found.before.p99_ms:.2f} times)",
        err=True,
    )
    result = {"machine": machine(), "versions": versions(), "backups": found}
    typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


if __name__ == "__main__":
    typer.run(backup)
