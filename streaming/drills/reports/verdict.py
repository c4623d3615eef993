"""What is expected of each drill, and whether it was met."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streaming.drills.reports.figures import Figures, Noticed


class Expectation(msgspec.Struct, frozen=True):
    """What was expected, the figure that was measured, and whether it meets what was expected."""

    what: str
    expected: str
    measured: str
    met: bool


@dataclass(frozen=True, kw_only=True)
class RecoveryObjectives:
    """The expectations that differ between drills. None: the figure is reported and not judged.

    first_answer_seconds: from the beginning of the repair, or from the fault if nobody repairs anything.
    slowdown: the p50 of the first 5 s after the answers have come back, against that before.
    errors: whether clients may get errors that they have to handle, such as a commit that is to be retried.
    """

    first_answer_seconds: float
    longest_gap_seconds: float | None = None
    slowdown: float | None = None
    errors: bool = True


def judge(objectives: RecoveryObjectives, figures: Figures, noticed: Noticed) -> list[Expectation]:
    """Compare an episode's figures with what is expected of it."""
    return [*_times(objectives, figures), *_clients(objectives, noticed)]


def seconds(value: float | None) -> str:
    """Seconds for people, with as many digits as they can use."""
    if value is None:
        return "never"
    return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def _times(objectives: RecoveryObjectives, figures: Figures) -> Iterator[Expectation]:
    repaired = figures.after_repair_seconds is not None
    first = figures.after_repair_seconds if repaired else figures.first_answer_seconds
    since = "the repair began" if repaired else "the fault"
    yield _at_most(f"first answer since {since}", first, objectives.first_answer_seconds)
    if objectives.longest_gap_seconds is not None:
        yield _at_most("longest time without an answer", figures.longest_gap_seconds, objectives.longest_gap_seconds)
    if objectives.slowdown is not None:
        slowdown = figures.slowdown
        yield Expectation(
            "p50 in the first 5 s of answers, against before",
            f"at most {objectives.slowdown:g} times",
            "unknown" if slowdown is None else f"{slowdown:.1f} times",
            slowdown is not None and slowdown <= objectives.slowdown,
        )
    yield _none("requests without an answer", figures.unanswered)


def _clients(objectives: RecoveryObjectives, noticed: Noticed) -> Iterator[Expectation]:
    yield _none("acknowledged commits lost", noticed.lost)
    yield _none("members expelled", noticed.expelled)
    yield _none("members that had to join again", noticed.rejoins)
    yield _none("records skipped", noticed.skipped)
    if not objectives.errors:
        yield _none("errors that reached an application", noticed.errors)


def _at_most(what: str, measured: float | None, limit: float) -> Expectation:
    return Expectation(what, f"within {seconds(limit)}", seconds(measured), measured is not None and measured <= limit)


def _none(what: str, count: int) -> Expectation:
    return Expectation(what, "none", str(count) if count else "none", count == 0)
