"""What the drills and the demo show on the console while they run."""

from rich.status import Status

from streaming.contract.output.terminal import Part, Terminal
from streaming.drills.recording import Step
from streaming.drills.reports.verdict import seconds as seconds_of

STEP_COLOURS = {"fault": "red", "repair": "green", "reached": "green", "command": "cyan", "step": "default"}
VERDICT_COLOURS = {"passed": "green", "skipped": "yellow", "FAILED": "red"}


class ConsoleOutput:
    """Prints every event of a run as a line. :meth:`step` is called from any thread."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def begin(self, title: str, what: str) -> None:
        """Print the title of a part of the run, and what is done in it."""
        self._print("")
        self._print(title, style="bold")
        self._print(what, style="dim")

    def step(self, step: Step) -> None:
        """Print the step with the seconds since the recording began; a command after a prompt."""
        prompt = "$ " if step.kind == "command" else ""
        self._print(f"{step.at:6.1f}s  {prompt}{step.text}", style=STEP_COLOURS[step.kind])

    def waiting(self, what: str) -> Status:
        """Show what the run waits for while it does, on a terminal."""
        return self._terminal.waiting(f"waiting: {what} ...")

    def check(self, passed: bool, text: str) -> None:
        """Print whether a check passed. text: what was checked, and the figures behind it."""
        self._print(("ok    ", "green") if passed else ("MISSED", "red"), f"  {text}")

    def end(self, verdict: str, seconds: float, reason: str = "") -> None:
        """Print the verdict (passed, skipped or FAILED) of a part, and the reason if it was not finished."""
        self._print((verdict, VERDICT_COLOURS[verdict]), f" in {seconds_of(seconds)}")
        if reason:
            self._print(reason)

    def line(self, text: str) -> None:
        """Print a line."""
        self._print(text)

    def _print(self, *parts: Part, style: str | None = None) -> None:
        self._terminal.line(*parts, style=style)
