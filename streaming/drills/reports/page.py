"""The report as one HTML file, which needs no other file and no network."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from streaming.contract.output.text import html_text
from streaming.drills.reports.figures import Figures, Noticed
from streaming.drills.reports.report import DrillReport, Report
from streaming.drills.reports.timeline import timeline
from streaming.drills.reports.verdict import seconds

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem }
h3 { font-size: 1rem; margin-bottom: .3rem }
table { border-collapse: collapse; margin: .5rem 0 } td, th { text-align: left; padding: .15rem .8rem .15rem 0 }
th { font-weight: 600 } td, th { vertical-align: top; border-bottom: 1px solid #eee }
td.number, th.number { text-align: right } code, pre { font-size: .9em } pre { white-space: pre-wrap }
.passed, .met { color: #1b7837 } .FAILED, .missed { color: #b2182b; font-weight: 600 } .skipped { color: #666 }
svg { width: 100%; height: auto; border: 1px solid #eee } .fault { color: #b2182b } .repair { color: #1b7837 }
"""

NO_FIGURE = "–"  # noqa: RUF001 - a dash as in a printed table


def page(report: Report) -> str:
    """The whole file."""
    verdict = "passed" if report.passed else "FAILED"
    title = f"Drills of {report.began_at:%Y-%m-%d}: {verdict}"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f"<title>{html_text(title)}</title><style>{STYLE}</style></head><body>",
        f'<h1>Drills of the group coordinator: <span class="{verdict}">{verdict}</span></h1>',
        f"<p>{html_text(report.coordinator)}. {_time(report.began_at)} to {_time(report.ended_at)}.</p>",
        _table((), [(html_text(name), html_text(value)) for name, value in (report.machine | report.versions).items()]),
        *_summary(report.drills),
        *(part for number, drill in enumerate(report.drills, 1) for part in _drill(number, drill)),
        "<h2>How to read this</h2>",
        f"<p>{READING}</p>",
        "</body></html>\n",
    ]
    return "\n".join(parts)


READING = (
    "A probe sends ten requests a second, whether earlier ones are answered or not: commits of ascending offsets, and "
    "reads of what it has committed. Each is a point of the timeline. Members that join over the topics, and in drills "
    "on a coordinator of their own two unmodified Kafka consumers behind a gateway, one with the classic and one with "
    "the consumer group protocol, keep their membership and commit. A commit is lost if it was acknowledged and a "
    "later read does not have it. A member is expelled if the group has removed it. Times to recovery count from the "
    "fault, or from the beginning of the repair, to the first answer to a request that was sent after it; until then, "
    "clients wait."
)


def _summary(drills: Sequence[DrillReport]) -> Iterator[str]:
    heads = (
        "drill", "verdict", "first answer", "since the repair", "longest gap", "p50 before", "p50 after", "slowest",
        "lost commits", "expelled", "rejoins", "errors",
    )  # fmt: skip
    yield _table(heads, [_summary_row(number, drill) for number, drill in enumerate(drills, 1)], numbers_from=2)


def _summary_row(number: int, drill: DrillReport) -> list[str]:
    verdict = f'<span class="{drill.verdict}">{drill.verdict}</span>'
    row = [f'<a href="#{number}">{html_text(drill.title)}</a>', verdict]
    if drill.figures is None or drill.noticed is None:
        return [*row, *[NO_FIGURE] * 10]
    figures, noticed = drill.figures, drill.noticed
    counts = (noticed.lost, noticed.expelled, noticed.rejoins, noticed.errors)
    return [
        *row,
        _seconds(figures.first_answer_seconds),
        _seconds(figures.after_repair_seconds),
        _seconds(figures.longest_gap_seconds),
        _milliseconds(figures.p50_before_ms),
        _milliseconds(figures.p50_after_ms),
        _milliseconds(figures.slowest_ms),
        *map(str, counts),
    ]


def _drill(number: int, drill: DrillReport) -> Iterator[str]:
    verdict = f'<span class="{drill.verdict}">{drill.verdict}</span>'
    yield f'<h2 id="{number}">{html_text(drill.title)}: {verdict}</h2>'
    yield f"<p>{html_text(drill.what)}</p>"
    if drill.skipped:
        yield f"<p>Skipped: {html_text(drill.skipped)}</p>"
        return
    if drill.failure:
        yield f'<pre class="missed">{html_text(drill.failure)}</pre>'
    if drill.episode is None or drill.figures is None or drill.noticed is None:
        return
    yield timeline(drill.episode, drill.figures, drill.title)
    yield "<h3>Expected and measured</h3>"
    rows = [
        [
            html_text(each.what),
            html_text(each.expected),
            f'<span class="{"met" if each.met else "missed"}">{html_text(each.measured)}</span>',
        ]
        for each in drill.expectations
    ]
    yield _table(("", "expected", "measured"), rows)
    yield "<h3>What was done</h3>"
    steps = [
        [_clock(drill, step.at), f"{step.at:+.1f} s", f'<span class="{step.kind}">{_step(step.kind, step.text)}</span>']
        for step in drill.episode.steps
    ]
    yield _table(("UTC", "since the fault", ""), steps)
    yield "<h3>Figures</h3>"
    yield _table((), _figures(drill.figures))
    yield "<h3>What clients noticed</h3>"
    yield _table((), _noticed(drill, drill.noticed))


def _figures(figures: Figures) -> list[list[str]]:
    slowdown = NO_FIGURE if figures.slowdown is None else f"{figures.slowdown:.1f} times that before"
    return [
        ["first answer since the fault", _seconds(figures.first_answer_seconds)],
        ["first answer since the repair began", _seconds(figures.after_repair_seconds)],
        ["longest time without an answer", _seconds(figures.longest_gap_seconds)],
        ["the same before the fault", _seconds(figures.usual_gap_seconds)],
        ["p50 before the fault", _milliseconds(figures.p50_before_ms)],
        ["p50 in the first 5 s of answers", f"{_milliseconds(figures.p50_after_ms)}, {slowdown}"],
        ["as fast as before, within a factor of 2, after", _seconds(figures.settled_seconds)],
        ["slowest answer", _milliseconds(figures.slowest_ms)],
        ["requests of the probe", f"{figures.requests:,}"],
        ["of these, answered after more than 30 s", f"{figures.slow_requests:,}"],
        ["answered with an error", f"{figures.failed:,}"],
        ["never answered", f"{figures.unanswered:,}"],
    ]


def _noticed(drill: DrillReport, noticed: Noticed) -> list[list[str]]:
    errors = "; ".join(f"{html_text(text)} ({count})" for text, count in sorted(noticed.error_texts.items()))
    generations = "; ".join(f"{html_text(group)}: {old} → {new}" for group, (old, new) in drill.generations.items())
    return [
        ["errors that reached an application", f"{noticed.errors} {errors}"],
        ["members that had to join again", str(noticed.rejoins)],
        ["members expelled", str(noticed.expelled)],
        ["generations, before and after", generations or NO_FIGURE],
        ["acknowledged commits until the end", f"{drill.acknowledged:,}"],
        ["of these, lost", str(noticed.lost)],
        ["records skipped", str(noticed.skipped)],
        ["partitions whose records were delivered again", str(noticed.repeated)],
    ]


def _step(kind: str, text: str) -> str:
    return f"<code>{html_text(text)}</code>" if kind == "command" else html_text(text)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1000) -> str:
    """A table; ``rows`` are HTML. Columns from ``numbers_from`` on are aligned to the right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        aligned = (' class="number"' if column >= numbers_from else "" for column in range(len(row)))
        return "".join(f"<{tag}{each}>{cell}</{tag}>" for each, cell in zip(aligned, row, strict=True))

    lines = [cells("td", row) for row in rows]
    if heads:
        lines.insert(0, cells("th", heads))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _clock(drill: DrillReport, at: float) -> str:
    return "" if drill.fault_at is None else f"{drill.fault_at + timedelta(seconds=at):%H:%M:%S}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _seconds(value: float | None) -> str:
    return NO_FIGURE if value is None else seconds(value)


def _milliseconds(value: float | None) -> str:
    if value is None:
        return NO_FIGURE
    return f"{value:,.0f} ms" if value < 10_000 else seconds(value / 1000)
