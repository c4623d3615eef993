"""What drills and the demo print with texts of clients, among them markup and control characters."""

import io

from rich.console import Console

from streaming.contract.output.terminal import Terminal
from streaming.contract.output.text import printable
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.recording import Step
from tests.contract.output.hostile_texts import HOSTILE, unprintable


def test_texts_of_clients_are_shown_as_text() -> None:
    stream = io.StringIO()
    output = ConsoleOutput(Terminal(Console(file=stream, width=1_000)))
    output.begin(HOSTILE, HOSTILE)
    output.step(Step(1.0, "command", HOSTILE))
    output.check(False, HOSTILE)
    output.end("FAILED", 1.0, HOSTILE)
    output.line(HOSTILE)
    with output.waiting(HOSTILE):
        pass
    assert unprintable(stream.getvalue()) == []
    assert stream.getvalue().count(printable(HOSTILE)) == 6
