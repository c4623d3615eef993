"""Figures of a story."""

from collections import Counter
from collections.abc import Iterable, Sequence

from streaming.explain.story.model import Rebalance, Summary
from streaming.explain.story.roster import Roster

FLAPPING_MS = 600_000
HOUR_MS = 3_600_000


def summary_of(rebalances: Sequence[Rebalance], roster: Roster, span_ms: int, unstable_ms: int) -> Summary:
    """The figures of so long a time, of which the group was not Stable for ``unstable_ms``."""
    span = max(span_ms, 1)
    causing = [roster.client(one.cause.member) for one in rebalances]
    counts = Counter(name for name in causing if name is not None)
    busiest, count = counts.most_common(1)[0] if counts else (None, 0)
    return Summary(
        len(rebalances),
        len(rebalances) * HOUR_MS / max(span, HOUR_MS),
        unstable_ms / span,
        _flapping(zip(rebalances, causing, strict=True), len(rebalances)),
        busiest,
        count,
    )


def _flapping(told: Iterable[tuple[Rebalance, str | None]], count: int) -> float:
    last: dict[str, int] = {}
    repeated = 0
    for rebalance, name in told:
        if name is not None:
            repeated += name in last and rebalance.began - last[name] <= FLAPPING_MS
            last[name] = rebalance.began
    return repeated / count if count else 0.0
