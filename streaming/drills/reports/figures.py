"""The figures of an episode: how long nobody was answered, how slow answers were, and what clients noticed."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

from streaming.drills.recording import Episode, ProbeRequest

FIRST_SECONDS = 5.0
"""The time after the answers have come back in which their p50 is compared with the p50 before the fault."""

SETTLED_FACTOR = 2.0
WINDOW_SECONDS = 1.0
"""Answers have settled when the p50 of every further window of this length is within the factor of that before."""

CLIENT_LIMIT_SECONDS = 30.0
"""The default of Kafka's ``request.timeout.ms``: a client would have given up a request that took longer."""


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Times to recovery and latencies of the probe's requests; None where nothing was answered.

    first_answer_seconds: from the fault to the first answer to a request that was sent after it.
    after_repair_seconds: from the beginning of the repair to the first answer to a request that was sent after it.
    longest_gap_seconds: the longest time without an answer since the fault; usual_gap_seconds: the same before it.
    gap_at, back_at: the begin and the end of the longest gap, in seconds since the fault; back_at is None if it did
    not end.
    p50_before_ms, p50_after_ms: medians before the fault, and of the requests sent in the first 5 s after ``back_at``.
    settled_seconds: from ``back_at`` until the p50 of each second stays within twice that before.
    slow_requests: answered after more than 30 s, when a client would have given them up. failed: answered with an
    error. unanswered: never answered.
    """

    requests: int
    first_answer_seconds: float | None
    after_repair_seconds: float | None
    longest_gap_seconds: float | None
    usual_gap_seconds: float | None
    gap_at: float | None
    back_at: float | None
    p50_before_ms: float | None
    p50_after_ms: float | None
    slowest_ms: float | None
    settled_seconds: float | None
    slow_requests: int
    failed: int
    unanswered: int

    @property
    def slowdown(self) -> float | None:
        """How many times the p50 before the fault the p50 after it is."""
        if not self.p50_before_ms or self.p50_after_ms is None:
            return None
        return self.p50_after_ms / self.p50_before_ms


class Noticed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the clients noticed but slow answers: counts, and the texts of errors with their counts."""

    errors: int = 0
    rejoins: int = 0
    expelled: int = 0
    lost: int = 0
    skipped: int = 0
    repeated: int = 0
    error_texts: dict[str, int] = {}


def figures_of(episode: Episode) -> Figures:
    """Measure an episode."""
    requests = episode.requests
    before = [request for request in requests if request.sent < 0]
    gap = _longest_gap(requests, 0.0, episode.end)
    usual = _longest_gap(requests, episode.start, 0.0)
    back_at = None if gap is None or gap[1] == episode.end else gap[1]
    p50_before = _p50_ms(_latencies(before))
    after = [] if back_at is None else [r for r in requests if back_at <= r.sent < back_at + FIRST_SECONDS]
    latencies = _latencies(requests)
    return Figures(
        requests=len(requests),
        first_answer_seconds=_first_answer(requests, 0.0),
        after_repair_seconds=None if episode.repair is None else _first_answer(requests, episode.repair),
        longest_gap_seconds=None if gap is None else gap[1] - gap[0],
        usual_gap_seconds=None if usual is None else usual[1] - usual[0],
        gap_at=None if gap is None else gap[0],
        back_at=back_at,
        p50_before_ms=p50_before,
        p50_after_ms=_p50_ms(_latencies(after)),
        slowest_ms=max(latencies, default=0.0) * 1000 if latencies else None,
        settled_seconds=None if back_at is None or p50_before is None else _settled(episode, back_at, p50_before),
        slow_requests=sum(latency > CLIENT_LIMIT_SECONDS for latency in latencies),
        failed=sum(bool(request.error) for request in requests),
        unanswered=sum(request.answered is None for request in requests),
    )


def noticed_in(episode: Episode) -> Noticed:
    """Count what clients noticed since the fault; the probe's failed requests are errors, too."""
    notices = [notice for notice in episode.notices if notice.at >= 0]
    kinds = Counter(notice.kind for notice in notices)
    texts = Counter(f"{notice.client}: {notice.text}" for notice in notices if notice.kind == "error")
    texts.update(f"probe: {request.error}" for request in episode.requests if request.error)
    if unanswered := sum(request.answered is None for request in episode.requests):
        texts["probe: no answer"] += unanswered
    return Noticed(
        errors=texts.total(),
        rejoins=kinds["rejoin"],
        expelled=kinds["expelled"],
        lost=kinds["lost"],
        skipped=kinds["skipped"],
        repeated=kinds["repeated"],
        error_texts=dict(texts),
    )


def _latencies(requests: Sequence[ProbeRequest]) -> list[float]:
    return [r.answered - r.sent for r in requests if r.answered is not None and not r.error]


def _p50_ms(latencies: Sequence[float]) -> float | None:
    return median(latencies) * 1000 if latencies else None


def _first_answer(requests: Sequence[ProbeRequest], since: float) -> float | None:
    answers = [r.answered - since for r in requests if r.sent >= since and r.answered is not None and not r.error]
    return min(answers, default=None)


def _longest_gap(requests: Sequence[ProbeRequest], start: float, end: float) -> tuple[float, float] | None:
    """The begin and the end of the longest time without an answer between two times; None if nobody asked.

    It may begin with the last answer before ``start``, and last until ``end``.
    """
    if not requests:
        return None
    times = sorted(r.answered for r in requests if r.answered is not None and not r.error and r.answered < end)
    earlier = [at for at in times if at < start]
    within = [at for at in times if at >= start]
    return max(pairwise([*(earlier[-1:] or [start]), *within, end]), key=lambda gap: gap[1] - gap[0])


def _settled(episode: Episode, back_at: float, p50_before_ms: float) -> float | None:
    """Seconds from ``back_at`` to the first window from which on every window is fast; None if the last is not."""
    settled: float | None = None
    window = back_at
    while window + WINDOW_SECONDS <= episode.end:
        sent = [r for r in episode.requests if window <= r.sent < window + WINDOW_SECONDS]
        p50 = _p50_ms(_latencies(sent))
        if p50 is None or p50 > SETTLED_FACTOR * p50_before_ms:
            settled = None
        elif settled is None:
            settled = window - back_at
        window += WINDOW_SECONDS
    return settled
