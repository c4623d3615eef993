"""Prints without rich: for processes that may lack it, and for long outputs, for which it takes seconds."""

import re
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, TextIO

from streaming.contract.output.text import escaped_json, json_text, printable

_OTHERS_INDENT = re.compile(r"[^\t]+")


def replace_what_cannot_be_encoded() -> None:
    """Let standard output have escapes for characters that its encoding lacks, as standard error has."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_plain(line: str, *, to_stderr: bool = False) -> None:
    """Print a line at once."""
    _write(printable(line), to_stderr=to_stderr)


def line_writer(to: TextIO) -> Callable[[str], None]:
    """A function that writes lines to a log."""

    def write(line: str) -> None:
        to.write(printable(line) + "\n")
        to.flush()

    return write


def print_relayed(output: bytes) -> None:
    """Print a line of another program to standard error; its tabs, with which Java indents, stay."""
    line = output.decode(errors="backslashreplace").rstrip("\r\n")
    _write(_OTHERS_INDENT.sub(lambda found: printable(found.group()), line), to_stderr=True)


def print_json(value: Any, indent: int | None = None) -> None:
    """Print a message, or anything of messages, as JSON, at once."""
    _write(json_text(value, indent))


def print_encoded_json(encoded: bytes | str) -> None:
    """Print JSON that an encoder of other numbers or names has made, at once."""
    _write(escaped_json(encoded if isinstance(encoded, str) else encoded.decode()).removesuffix("\n"))


def print_file(content: str) -> None:
    """Print the content of a file: to a terminal as lines, else as it is, for the program that reads it."""
    if sys.stdout.isatty():
        for line in content.removesuffix("\n").split("\n"):
            print_plain(line)
    else:
        sys.stdout.write(content)


def _write(text: str, *, to_stderr: bool = False) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(text + "\n")
    stream.flush()
