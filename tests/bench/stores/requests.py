"""The requests to the store of a checkpoint at s3a://: for a batch, and for an idle hour; and what they cost.

`make bench-store` runs a job on a real S3 server, which logs each request, sends commits at a steady rate, and then
nothing.
"""

import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import machine, versions
from tests.object_store.server import Request, S3Server
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess, commit_offsets

BUCKET, CHECKPOINT = "costs", "coordinator"

HOUR_SECONDS = 3600.0
HOURS_OF_MONTH = 730

DOLLARS_FOR_THOUSAND = {"write": 0.005, "list": 0.005, "read": 0.0004, "delete": 0.0}
"""Amazon's list price of S3 Standard in us-east-1, which an operator should compare with the present one."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a part of the run, by kind, and the batches that the job has completed in it."""

    name: str
    seconds: float
    batches: int
    requests: dict[str, int]

    @property
    def dollars(self) -> float:
        """What the requests cost."""
        return sum(count * DOLLARS_FOR_THOUSAND[kind] / 1000 for kind, count in self.requests.items())


def kind_of(request: Request) -> str:
    """How a request is priced."""
    if request.method == "GET" and request.path.strip("/") == BUCKET:
        return "list"
    if request.method in ("GET", "HEAD"):
        return "read"
    # Many objects at once are deleted with a POST to the bucket.
    is_deletion = request.method == "DELETE" or (request.method == "POST" and request.path.strip("/") == BUCKET)
    return "delete" if is_deletion else "write"


class Measurement:
    """A job on a store, whose requests are counted."""

    def __init__(self, s3: S3Server, job: CoordinatorProcess) -> None:
        self._s3 = s3
        self._job = job

    def part(self, name: str, seconds: float, commits_per_second: float = 0.0) -> Part:
        """Send commits at this rate for a while, and count."""
        begin, batches, began = len(self._s3.output), self._batches(), time.monotonic()
        number = 0
        while (waited := time.monotonic() - began) < seconds:
            if commits_per_second:
                commit_offsets(self._job, f"group-{number % 20}", number)
                number += 1
            time.sleep(max(0.0, min(seconds - waited, 1.0 / (commits_per_second or 1.0))))
        requests = Counter(map(kind_of, self._s3.requests(begin)))
        elapsed = round(time.monotonic() - began, 1)
        return Part(name=name, seconds=elapsed, batches=self._batches() - batches, requests=dict(requests))

    def _batches(self) -> int:
        folder = self._s3.folder / BUCKET / CHECKPOINT / "commits"
        return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)


def lines(busy: Part, idle: Part) -> Iterator[str]:
    """The figures as text."""
    for kind in DOLLARS_FOR_THOUSAND:
        per_batch = busy.requests.get(kind, 0) / max(1, busy.batches)
        per_hour = idle.requests.get(kind, 0) * HOUR_SECONDS / idle.seconds
        yield f"{kind}: {per_batch:.1f} requests a batch, {per_hour:,.0f} in an idle hour"
    batches = busy.batches * HOUR_SECONDS / busy.seconds
    month = busy.dollars * HOURS_OF_MONTH * HOUR_SECONDS / busy.seconds
    yield (
        f"{busy.dollars / max(1, busy.batches) * 1e6:.2f} dollars for a million batches; "
        f"{month:.2f} dollars a month at {batches:,.0f} batches an hour"
    )
    yield f"{idle.dollars * HOURS_OF_MONTH * HOUR_SECONDS / idle.seconds:.2f} dollars for an idle month"


def main(
    busy: Annotated[float, typer.Option(help="How long commits are sent, s.")] = 120,
    idle: Annotated[float, typer.Option(help="How long the job is idle, s.")] = 600,
    settle: Annotated[float, typer.Option(help="The time before each of them, s.")] = 30,
    rate: Annotated[float, typer.Option(help="Commits a second.")] = 5,
    profile: Annotated[str, typer.Option(help="The job's profile.")] = "object-store",
) -> None:
    """Count the requests to the store, print the figures, and the counts as JSON."""
    # As an exception, SIGTERM ends the broker, the server and the job, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-store-")))
        broker = stack.enter_context(EmbeddedBroker())
        (folder / "store").mkdir()
        s3 = stack.enter_context(S3Server(folder / "store"))
        s3.start()
        s3.bucket(BUCKET)
        options = {"profile": profile, "checkpoint": f"s3a://{BUCKET}/{CHECKPOINT}", **SHORT_LIVED_JVM, **s3.options}
        job = CoordinatorProcess(broker.bootstrap_servers, folder / "job", options, defaults={})
        stack.callback(job.kill)
        job.start()
        measurement = Measurement(s3, job)
        measurement.part("settle", settle, rate)
        measured = [measurement.part("busy", busy, rate)]
        measurement.part("settle", settle)
        measured.append(measurement.part("idle", idle))
    for line in lines(*measured):
        typer.echo(line, err=True)
    result = {"machine": machine(), "versions": versions(), "profile": profile, "parts": measured}
    typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


if __name__ == "__main__":
    typer.run(main)
