"""What reaches a terminal or standard error of lines, tables, JSON, logs and uncaught errors with hostile texts."""

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

from streaming.contract.output import plain
from streaming.contract.output.columns import Column
from streaming.contract.output.logs import PrintableFormatter
from streaming.contract.output.terminal import Terminal
from streaming.contract.output.text import printable
from tests.contract.output.hostile_texts import HOSTILE, PIECES, unprintable


class TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(use: Callable[[Terminal], None], *, terminal: bool = False) -> str:
    """What is written; without ``terminal``, without colours."""
    stream = TerminalStream() if terminal else io.StringIO()
    use(Terminal(Console(file=stream, width=1_000, force_terminal=terminal, color_system=None)))
    return stream.getvalue()


def test_a_line_is_one_line_and_no_markup_no_emoji_no_link_and_no_control() -> None:
    assert printed(lambda to: to.line(HOSTILE, (HOSTILE, "bold"))) == printable(HOSTILE) * 2 + "\n"
    assert "http://evil.example]here[/link]" in printed(lambda to: to.line("".join(PIECES)))


def hostile_table(to: Terminal) -> None:
    to.table(("GROUP", HOSTILE, Column(HOSTILE, rank=1, least=5)), [(HOSTILE, ["a", HOSTILE], "[/]"), ("c\nd", [], "")])


def test_a_table_shows_cells_and_titles_as_text() -> None:
    shown = printed(hostile_table, terminal=True)
    assert unprintable(re.sub("\x1b\\[[0-9;]*m", "", shown)) == []
    assert printable(HOSTILE) in shown
    assert [line for line in shown.splitlines() if "│" in line and line.count(printable(HOSTILE)) == 1]
    assert " c\\u000ad " in shown


def test_a_table_for_a_program_is_plain_columns_that_are_not_cut() -> None:
    shown = printed(hostile_table)
    assert unprintable(shown) == []
    titles, first, second = shown.splitlines()
    assert titles.startswith("GROUP ")
    assert first.startswith(f"{printable(HOSTILE)}  a; {printable(HOSTILE)}  [/]")
    assert second.split() == ["c\\u000ad", "-", "-"]
    long = "x" * 5_000
    shown = printed(lambda to: to.table(("GROUP", "LEADER EPOCH"), [(long, "1"), ("g", "")]))
    assert shown.splitlines()[1:] == [f"{long}  1", f"g{' ' * 4_999}  -"]
    assert shown.split()[:2] == ["GROUP", "LEADER-EPOCH"]


def test_a_status_shows_its_text_as_text() -> None:
    def wait(terminal: Terminal) -> None:
        with terminal.waiting(HOSTILE):
            pass

    assert printable(HOSTILE)[:20] in printed(wait, terminal=True)
    assert HOSTILE[:20] not in printed(wait, terminal=True)


@pytest.mark.parametrize(
    "use",
    [
        lambda: plain.print_plain(HOSTILE),
        lambda: plain.print_plain(HOSTILE, to_stderr=True),
        lambda: plain.print_relayed(HOSTILE.replace("\n", "").encode() + b"\xff\n"),
        lambda: plain.print_json({"group": HOSTILE}, indent=2),
        lambda: plain.print_encoded_json(json.dumps(HOSTILE, ensure_ascii=False)),
        lambda: plain.line_writer(sys.stdout)(HOSTILE),
    ],
)
def test_no_plain_line_has_control_characters(use: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    use()
    written = "".join(capsys.readouterr())
    assert unprintable(written.replace("\t", "")) == []
    assert "boom" in written


def test_a_file_is_printed_as_it_is_to_programs_and_with_escapes_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((io.StringIO(), "a\n\x1b\n"), (TerminalStream(), "a\n\\u001b\n")):
        monkeypatch.setattr(sys, "stdout", stream)
        plain.print_file("a\n\x1b\n")
        assert stream.getvalue() == shown


def test_a_log_line_is_one_line_and_a_traceback_keeps_its_lines() -> None:
    def record(with_error: bool) -> logging.LogRecord:
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            error = sys.exc_info() if with_error else None
        return logging.LogRecord("name", logging.WARNING, __file__, 1, "group %s is gone", (HOSTILE,), error, None)

    assert PrintableFormatter().format(record(with_error=False)) == f"group {printable(HOSTILE)} is gone"
    lines = PrintableFormatter().format(record(with_error=True)).split("\n")
    assert lines[1] == "Traceback (most recent call last):"
    assert all(map(str.isprintable, lines))


UNCAUGHT = """
import logging, threading
from streaming.contract.output.logs import log_to_stderr
log_to_stderr()
hostile = {hostile!r}
logging.getLogger("any.library").warning("of %s", hostile)
def fail():
    raise ValueError(hostile)
thread = threading.Thread(target=fail)
thread.start()
thread.join()
fail()
"""


def test_errors_that_nothing_catches_reach_standard_error_with_escapes() -> None:
    program = UNCAUGHT.format(hostile=HOSTILE)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert unprintable(ended.stderr) == []
    assert ended.stderr.count("ValueError: =[/]") == 2
    assert ended.stderr.startswith(f"of {printable(HOSTILE)}\n")
