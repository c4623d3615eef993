"""What a drill records while it runs: requests and their answers, what clients noticed, and the steps taken."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec

StepKind = Literal["step", "command", "fault", "repair", "reached"]
NoticeKind = Literal["error", "rejoin", "expelled", "lost", "skipped", "repeated"]

DIGITS = 6
"""The digits of a request's seconds in an episode: a microsecond, and a smaller report."""

LAST_SECONDS = 2.0
"""A request without an answer that was sent so shortly before the end of an episode says nothing."""


class ProbeRequest(msgspec.Struct, rename="camel"):
    """A request of the probe: when it was sent and answered, in seconds; ``error`` is empty for a good answer."""

    sent: float
    answered: float | None = None
    error: str = ""


class Notice(msgspec.Struct, frozen=True):
    """Something but a slow answer that a client noticed, ``at`` in seconds.

    error: an error that reached the application. rejoin: the member had to join again. expelled: the group had removed
    it. lost: an acknowledged commit was not there. skipped: a record was not delivered. repeated: records were
    delivered again.
    """

    at: float
    client: str
    kind: NoticeKind
    text: str


class Step(msgspec.Struct, frozen=True):
    """Something that was done, ``at`` in seconds: a step, a command line, the fault, the begin of its repair,
    or something that was awaited.
    """

    at: float
    kind: StepKind
    text: str


class Recording:
    """Collects requests, notices and steps, with the seconds since its creation. Thread-safe.

    show: called with every step, on the thread that records it.
    """

    def __init__(self, show: Callable[[Step], object] | None = None) -> None:
        self._show = show
        self.began_at = datetime.now(UTC)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._requests: list[ProbeRequest] = []
        self._notices: list[Notice] = []
        self._steps: list[Step] = []

    def now(self) -> float:
        """Seconds since the recording began."""
        return time.monotonic() - self._began

    def sent(self) -> ProbeRequest:
        """Record a request that is sent now; the caller passes it to :meth:`answered`."""
        request = ProbeRequest(self.now())
        with self._lock:
            self._requests.append(request)
        return request

    def answered(self, request: ProbeRequest, error: str = "") -> None:
        """Record the answer to a request, or the error with which it failed."""
        request.error = error
        request.answered = self.now()

    def notice(self, client: str, kind: NoticeKind, text: str) -> None:
        """Record what a client has noticed."""
        with self._lock:
            self._notices.append(Notice(self.now(), client, kind, text))

    def step(self, kind: StepKind, text: str) -> Step:
        """Record what is done now, and show it."""
        step = Step(self.now(), kind, text)
        with self._lock:
            self._steps.append(step)
        if self._show is not None:
            self._show(step)
        return step

    def unanswered(self, end: float) -> int:
        """How many requests that were sent before a time have no answer yet."""
        with self._lock:
            return sum(request.answered is None for request in self._requests if request.sent < end)

    def first_answer_after(self, at: float) -> float | None:
        """When the first good answer to a request arrived that was sent at ``at`` or later; None so far."""
        with self._lock:
            return min(
                (r.answered for r in self._requests if r.sent >= at and r.answered and not r.error), default=None
            )

    def episode(self, first_step: float, start: float, end: float) -> "Episode | None":
        """What was recorded from ``start`` to ``end``, with the steps since ``first_step``; None without a fault.

        Requests that were sent in the last moments are left out: their answers may still come.
        """
        with self._lock:
            steps = [step for step in self._steps if first_step <= step.at <= end]
            fault = next((step.at for step in steps if step.kind == "fault"), None)
            if fault is None:
                return None
            sent = [r for r in self._requests if start <= r.sent < end]
            while sent and sent[-1].answered is None and sent[-1].sent > end - LAST_SECONDS:
                sent.pop()
            return Episode(
                start=start - fault,
                end=end - fault,
                repair=next((step.at - fault for step in steps if step.kind == "repair"), None),
                requests=[
                    ProbeRequest(
                        round(r.sent - fault, DIGITS),
                        None if r.answered is None else round(r.answered - fault, DIGITS),
                        r.error,
                    )
                    for r in sent
                ],
                notices=[Notice(n.at - fault, n.client, n.kind, n.text) for n in self._notices if start <= n.at <= end],
                steps=[Step(s.at - fault, s.kind, s.text) for s in steps],
            )


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, from the steady time before it to the steady time after it. Times are seconds since the fault.

    start, end: of the recording; requests are those sent between them. repair: when the repair began; None if nobody
    repaired anything.
    """

    start: float
    end: float
    repair: float | None
    requests: list[ProbeRequest]
    notices: list[Notice]
    steps: list[Step]
