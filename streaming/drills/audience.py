"""Who follows a run of drills, or the demo, while it happens."""

from contextlib import AbstractContextManager, nullcontext

from streaming.drills.recording import Step


class Audience:
    """Gets what happens during a run; this one ignores it. :meth:`step` is called from any thread."""

    def begin(self, title: str, what: str) -> None:
        """A part of the run begins. what: what is done in it."""

    def step(self, step: Step) -> None:
        """Something is done, or has happened."""

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """The context in which the run waits for something."""
        return nullcontext(what)

    def check(self, passed: bool, text: str) -> None:
        """Something was checked. text: what, and the figures behind it."""

    def end(self, verdict: str, seconds: float, reason: str = "") -> None:
        """The part ends after so many seconds. verdict: passed, skipped or FAILED. reason: why it was not finished."""

    def line(self, text: str) -> None:
        """Anything else that the user should know."""
