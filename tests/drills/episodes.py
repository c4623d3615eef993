"""Episodes for the tests of figures and reports: steady answers, a fault, and what the test says."""

from collections.abc import Sequence

from streaming.drills.recording import Episode, Notice, ProbeRequest, Step

STEADY_LATENCY = 0.2


def steady(start: float, end: float, latency: float = STEADY_LATENCY) -> list[ProbeRequest]:
    """Ten requests a second, each answered after ``latency`` seconds."""
    count = round((end - start) * 10)
    return [ProbeRequest(start + number / 10, start + number / 10 + latency) for number in range(count)]


def waiting(start: float, end: float, until: float) -> list[ProbeRequest]:
    """Ten requests a second that are all answered at the same time."""
    return [ProbeRequest(request.sent, until) for request in steady(start, end)]


def episode(
    requests: Sequence[ProbeRequest],
    notices: Sequence[Notice] = (),
    *,
    repair: float | None = None,
    start: float = -5.0,
    end: float = 20.0,
) -> Episode:
    """An episode whose fault is at 0."""
    steps = [Step(start, "step", "steady"), Step(0.0, "fault", "kill -9")]
    if repair is not None:
        steps.append(Step(repair, "repair", "started <again>"))
    return Episode(start=start, end=end, repair=repair, requests=list(requests), notices=list(notices), steps=steps)


def killed_for_six_seconds() -> Episode:
    """Nobody is answered for about six seconds; the repair begins after one; then answers are slow for two seconds."""
    requests = [
        *steady(-5, -0.2),
        *waiting(-0.2, 6, until=6.0),
        *steady(6, 8, latency=0.7),
        *steady(8, 20),
    ]
    return episode(requests, repair=1.0)
