"""What the job reports about a backlog, with batches and a clock that the tests play."""

import json
from dataclasses import dataclass, field

from streaming.job.monitoring.backlog import REPORT_SECONDS, Backlog, BacklogReport

TOPIC = "group-requests"
PIECE = 1_000
PIECE_SECONDS = 0.5


@dataclass
class ReportedJob:
    """A job that reads a thousand requests in half a second, and looks at its progress when a test says so."""

    now: float = 0.0
    appended: int = 0
    read: int = 0
    lines: list[str] = field(default_factory=list)
    progress: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report = BacklogReport(self._progress_after, self.lines.append, lambda: self.now)

    def append(self, requests: int) -> None:
        self.appended += requests

    def work(self, batches: int, *, runs_again: bool = False) -> None:
        """Run batches. Spark does not look for the end of the log before a batch that ``runs_again``."""
        for _ in range(batches):
            rows = min(PIECE, self.appended - self.read)
            self.read += rows
            self.now += PIECE_SECONDS
            source = {
                "latestOffset": None if runs_again else {TOPIC: {"0": self.appended}},
                "endOffset": {TOPIC: {"0": self.read}},
            }
            progress = {
                "batchId": len(self.progress),
                "durationMs": {"triggerExecution": int(PIECE_SECONDS * 1000)},
                "sources": [source],
                "numInputRows": rows,
            }
            self.progress.append((len(self.progress), json.dumps(progress)))

    def looks(self) -> list[str]:
        """What the job reports next; it looks when it may."""
        shown = len(self.lines)
        self.now += REPORT_SECONDS
        self.report.update()
        return self.lines[shown:]

    def _progress_after(self, batch_id: int) -> list[str]:
        return [text for number, text in self.progress if number > batch_id]


def ready(requests: int, *, batches: int = 1) -> ReportedJob:
    """A job that finds these requests at its start, and is ready after so many batches."""
    job = ReportedJob()
    job.append(requests)
    job.work(batches)
    return job


def test_a_long_backlog_is_reported_from_the_ready_line_to_its_end() -> None:
    job = ready(30_000)
    assert str(job.report.first()) == "29,000 requests wait, 2,000 are read each second, about 14 s remain"
    job.work(10)
    assert job.looks() == ["working off a backlog: 19,000 requests wait, 2,000 are read each second, about 10 s remain"]
    job.work(19)
    assert job.looks() == ["the backlog is worked off: 30,000 requests in 15.0 s"]
    job.append(10)
    job.work(1)
    assert job.looks() == []


def test_a_backlog_that_ends_between_two_looks_is_reported_with_its_size() -> None:
    job = ready(0)
    job.report.first()
    job.append(5_500)
    job.work(6)
    assert job.looks() == ["the backlog is worked off: 5,500 requests in 3.0 s"]


def test_a_backlog_that_ends_before_the_job_is_ready_is_reported_although_nothing_follows() -> None:
    job = ready(5_000, batches=5)
    assert job.report.first() == Backlog(0, 2_000)
    assert job.looks() == ["the backlog is worked off: 5,000 requests in 2.5 s"]
    assert job.looks() == []


def test_a_backlog_behind_a_batch_that_runs_again_is_reported_at_once() -> None:
    job = ReportedJob()
    job.append(20_000)
    job.work(1, runs_again=True)
    assert job.report.first().requests == 0
    job.work(9)
    job.report.update()
    assert job.lines == ["working off a backlog: 10,000 requests wait, 2,000 are read each second, about 5 s remain"]


def test_two_backlogs_between_two_looks_are_counted_together() -> None:
    job = ready(0)
    job.report.first()
    for _ in range(2):
        job.append(3_000)
        job.work(3)
        job.append(7)
        job.work(1)
    assert job.looks() == ["the backlog is worked off: 6,000 requests in 3.0 s"]


def test_a_batch_that_takes_long_is_not_reported_twice() -> None:
    job = ready(3_000)
    job.report.first()
    job.work(1)
    assert len(job.looks()) == 1
    assert job.looks() == []


def test_a_job_that_reads_all_that_is_appended_reports_nothing() -> None:
    job = ready(10)
    assert not job.report.first().requests
    for _ in range(3):
        job.append(PIECE)
        job.work(1)
        assert job.looks() == []
