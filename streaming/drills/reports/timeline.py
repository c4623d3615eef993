"""A drill's timeline as SVG: how long each request waited, when nobody was answered, and what was done."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

from streaming.contract.output.text import html_text
from streaming.drills.recording import Episode
from streaming.drills.reports.figures import Figures

WIDTH, HEIGHT = 960, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 44, 40
LABEL_GAP = 3
SMALLEST_SECONDS = 0.01
GOOD, BAD, FAULT, REPAIR, GAP, GREY = "#2166ac", "#b2182b", "#b2182b", "#1b7837", "#fddbc7", "#666666"
STEPS_OF_X = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
MOST_LABELS_OF_X = 16


class _Axes:
    """Converts seconds since the fault and latencies to places in the picture."""

    def __init__(self, episode: Episode, slowest: float) -> None:
        self.start, self.end = episode.start, max(episode.end, episode.start + 1)
        self.low = floor(log10(SMALLEST_SECONDS))
        self.high = max(ceil(log10(max(slowest, SMALLEST_SECONDS))), self.low + 1)

    def x(self, seconds: float) -> float:
        share = (min(max(seconds, self.start), self.end) - self.start) / (self.end - self.start)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, latency: float) -> float:
        share = (log10(max(latency, SMALLEST_SECONDS)) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def timeline(episode: Episode, figures: Figures, title: str) -> str:
    """The picture: each request as a point, by the time when it was sent and the seconds until its answer.

    A request without an answer, or with an error, is a red cross at the top. The longest time without an answer is
    shaded.
    """
    latencies = [request.answered - request.sent for request in episode.requests if request.answered is not None]
    axes = _Axes(episode, max(latencies, default=1.0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="11" '
        f'font-family="system-ui, sans-serif"><title>{html_text(title)}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_gap(axes, figures),
        *_grid(axes),
        *_marks(axes, episode),
        *_points(axes, episode),
        *_notices(axes, episode),
        "</svg>",
    ]
    return "".join(parts)


def _gap(axes: _Axes, figures: Figures) -> Iterator[str]:
    if figures.gap_at is None or figures.longest_gap_seconds is None:
        return
    begin, end = axes.x(figures.gap_at), axes.x(figures.gap_at + figures.longest_gap_seconds)
    width, height = max(end - begin, 1), HEIGHT - TOP - BOTTOM
    yield f'<rect x="{begin:.1f}" y="{TOP}" width="{width:.1f}" height="{height}" fill="{GAP}"/>'
    yield _text((begin + end) / 2, TOP - 6, f"{figures.longest_gap_seconds:.1f} s without an answer", GREY, "middle")


def _grid(axes: _Axes) -> Iterator[str]:
    for power in range(axes.low, axes.high + 1):
        y = axes.y(10**power)
        label = f"{10**power:g} s" if power >= 0 else f"{10 ** (power + 3):g} ms"
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>'
        yield _text(LEFT - 6, y + 4, label, GREY, "end")
    for second in _ticks(axes.start, axes.end):
        yield _text(axes.x(second), HEIGHT - BOTTOM + 16, f"{second:g}", GREY, "middle")
    yield _text((LEFT + WIDTH) / 2, HEIGHT - 8, "sent, seconds since the fault", GREY, "middle")
    yield _text(LEFT - 48, 14, "time to the answer", GREY, "start")


def _ticks(start: float, end: float) -> Sequence[int]:
    step = next((each for each in STEPS_OF_X if (end - start) / each <= MOST_LABELS_OF_X), STEPS_OF_X[-1])
    return range(ceil(start / step) * step, floor(end) + 1, step)


def _marks(axes: _Axes, episode: Episode) -> Iterator[str]:
    for step in episode.steps:
        if step.kind in ("fault", "repair"):
            x, colour = axes.x(step.at), FAULT if step.kind == "fault" else REPAIR
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
                f'stroke-dasharray="4 3"><title>{html_text(step.text)}</title></line>'
            )
            aside, anchor = (-LABEL_GAP, "end") if step.kind == "fault" else (LABEL_GAP, "start")
            yield _text(x + aside, TOP - 20, step.kind, colour, anchor)


def _points(axes: _Axes, episode: Episode) -> Iterator[str]:
    for request in episode.requests:
        x = axes.x(request.sent)
        if request.answered is None or request.error:
            what = html_text(request.error or "no answer")
            yield f'<path d="M{x - 3:.1f} {TOP}l6 6m0 -6l-6 6" stroke="{BAD}"><title>{what}</title></path>'
        else:
            y = axes.y(request.answered - request.sent)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.8" fill="{GOOD}" fill-opacity="0.6"/>'


def _notices(axes: _Axes, episode: Episode) -> Iterator[str]:
    y = HEIGHT - BOTTOM
    for notice in episode.notices:
        x = axes.x(notice.at)
        what = html_text(f"{notice.client}: {notice.kind}: {notice.text}")
        yield f'<path d="M{x:.1f} {y}l-4 -8h8z" fill="{BAD}"><title>{what}</title></path>'


def _text(x: float, y: float, text: str, colour: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{html_text(text)}</text>'
