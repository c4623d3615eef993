"""Every line for ``group-coordinator`` in a document has a command, and options that the command knows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from streaming.cli.app import app
from streaming.cli.connection import BOOTSTRAP_VARIABLE
from tests.docs.markdown import ROOT, name_of

LINE = re.compile(r"^(?: {4}|[\w-]*\$ )?(?:\.venv/bin/)?group-coordinator ((?:.*\\\n)*.*)$", re.MULTILINE)
GUIDE = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("document", GUIDE, ids=name_of)
def test_each_line_of_a_document_is_understood(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = document.read_text()
    # The sessions go on where the first one ends, which sets the variable.
    if f"export {BOOTSTRAP_VARIABLE}=" in text or document.parent.name == "console":
        monkeypatch.setenv(BOOTSTRAP_VARIABLE, "kafka-1:9092")
    for line in LINE.findall(text):
        words = shlex.split(line.replace("\\\n", ""), comments=True)
        if "..." not in words and not line.startswith("`"):
            parse(words)


def parse(words: list[str]) -> None:
    """Parse the words of a command line as the command does, and do nothing. Raises click's error of wrong usage."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words)
