"""Plays what documents give to type, in terminals, and returns what it prints."""

import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from copy import deepcopy
from itertools import zip_longest
from pathlib import Path
from typing import Self

from tests.docs.console.sessions import CONTROL_C, Block, Typed
from tests.docs.console.terminal import Terminal
from tests.docs.markdown import ROOT
from tests.support.waiting import LIMIT_SECONDS

PROGRAMS = {
    "python": (sys.executable,),
    "group-coordinator": (sys.executable, "-m", "streaming.cli.main"),
}
"""What is on the PATH of a terminal, and in ``.venv/bin``."""

VARIABLE = "export "

NOT_INHERITED = ("GROUP_COORDINATOR_", "COLUMNS", "LINES")
"""How the names of variables begin that a new terminal does not have."""

WAIT = re.compile(r"(gateway: )?waiting for .+, \d+ s|batch \d+ took .+; cause: .+")
"""What a command prints where an answer takes more than a second, and a job whose batch takes longer than usual."""

PROGRESS = re.compile(r"(\S+ has billed) \d+ orders")
"""What ``orders.py`` prints whenever orders have come; the last line has all of them."""


class Player:
    """Terminals in a folder that looks like a checkout; kills what still runs at the end of the block.

    folder: an empty folder; what commands write into the current folder is in it.
    replaced: what is typed in place of parts of the documents' lines, such as ports.
    environment: variables of the terminals, beside those of this process.
    """

    def __init__(self, folder: Path, replaced: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._replaced = replaced
        self._terminals: dict[str, Terminal] = {}
        self._shown: dict[str, int] = {}
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name, command in PROGRAMS.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            program.chmod(0o755)
        (folder / "docs").symlink_to(ROOT / "docs")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm",
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            **environment,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in reversed(self._terminals.values()):
            terminal.kill()

    def play(self, block: Block) -> Block:
        """Type the lines of a block; returns it with what they print.

        Raises AssertionError if a command ends with another exit code than the block says, or does not print in time
        what the block waits for.
        """
        played = deepcopy(block)
        for typed in played.typed:
            printed = self._type(typed, played)
            typed.printed = _at_any_pace([line.rstrip() for line in self._as_documented(printed).rstrip().splitlines()])
        return played

    def _type(self, typed: Typed, block: Block) -> str:
        if typed.line == CONTROL_C:
            return self._interrupt(typed.terminal, block)
        if typed.line.startswith(VARIABLE):
            name, _, value = self._here(typed.line.removeprefix(VARIABLE)).partition("=")
            self._environment[name] = value
            return ""
        if not typed.terminal:
            return self._repeat(typed, block)
        self._terminals[typed.terminal] = self._terminal(typed.line)
        self._shown[typed.terminal] = 0
        self._terminals[typed.terminal].await_text(self._here(block.until))
        return self._further_output(typed.terminal, self._here(block.until))

    def _interrupt(self, name: str, block: Block) -> str:
        terminal = self._terminals[name]
        terminal.await_text(self._here(block.until), self._shown[name])
        terminal.interrupt()
        code = terminal.wait()
        assert code == block.exit_code, f"`{terminal.command}` ended with {code} after Ctrl-C:\n{terminal.output}"
        return self._further_output(name).replace(CONTROL_C, "")

    def _further_output(self, name: str, until: str = "") -> str:
        """What a terminal has printed since it was shown last, to the end of the line with a text."""
        further = self._terminals[name].output[self._shown[name] :]
        if until:
            further = further[: further.index("\n", further.index(until)) + 1]
        self._shown[name] += len(further)
        return further

    def _repeat(self, typed: Typed, block: Block) -> str:
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            terminal = self._terminal(typed.line)
            try:
                code = terminal.wait()
            finally:
                terminal.kill()
            if block.is_enough(typed, terminal.output):
                assert code == block.exit_code, f"`{typed.line}` ended with {code}:\n{terminal.output}"
                return terminal.output
            assert time.monotonic() < deadline, (
                f"`{typed.line}` never printed what the page waits for:\n{terminal.output}"
            )

    def _terminal(self, line: str) -> Terminal:
        return Terminal(self._here(line), self._folder, self._environment)

    def _here(self, text: str) -> str:
        """A document's text as it is here."""
        for documented, here in self._replaced.items():
            text = text.replace(documented, here)
        return text

    def _as_documented(self, text: str) -> str:
        """A text from here as a document has it."""
        for documented, here in self._replaced.items():
            text = text.replace(here, documented)
        return text


def _at_any_pace(lines: list[str]) -> list[str]:
    """The lines without those that only a slow machine prints."""
    lines = [line for line in lines if not WAIT.fullmatch(line)]
    return [line for line, following in zip_longest(lines, lines[1:], fillvalue="") if not _repeats(line, following)]


def _repeats(line: str, following: str) -> bool:
    found, again = PROGRESS.fullmatch(line), PROGRESS.fullmatch(following)
    return found is not None and again is not None and found[1] == again[1]
