"""Nothing prints, logs, or makes HTML or CSV but the room of the output: found in the sources, not by running them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROOM = "streaming/contract/output/"

STREAMS = {"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
CALLS = {
    *("print", "breakpoint", "input", "os.write", "typer.echo", "typer.secho", "click.echo", "click.secho"),
    *("logging.basicConfig", "logging.StreamHandler", "logging.FileHandler", "logging.lastResort"),
    *("traceback.print_exc", "traceback.print_exception", "traceback.print_stack", "pprint.pprint"),
}
MODULES = {"rich", "click", "html", "xml.sax.saxutils", "csv", "pprint"}
"""Whose functions print, or make texts for readers."""

EXCEPTIONS = {
    # rich's and csv's functions that print nothing
    ("streaming/cli/help_output.py", "rich.markup"): "escapes the project's own help texts",
    ("streaming/explain/live/screen.py", "rich.text"): "the cells of textual's table, each made printable",
    ("streaming/drills/console_output.py", "rich.status"): "the type of what a terminal returns",
    ("streaming/explain/offsets/files.py", "csv"): "reads",
    # the streams as such
    ("streaming/job/spark_internals/own_jvm.py", "sys.stderr"): "standard output of the JVM, which Spark does not use",
    ("streaming/embedded/die_with_parent.py", "sys.stderr"): "standard output of the command, which is a child",
    ("streaming/embedded/die_with_parent.py", "sys.stdout"): "is switched off when nobody reads it",
    ("streaming/embedded/die_with_parent.py", "print"): "a process id; the file runs alone, without the project",
    ("streaming/embedded/stop_signals.py", "sys.stdout"): "is flushed before a sudden end",
    ("streaming/embedded/stop_signals.py", "sys.stderr"): "is flushed before a sudden end",
    ("streaming/embedded/stop_signals.py", "os.write"): "the number of a signal, into a pipe",
    ("streaming/embedded/interruption.py", "os.write"): "ends the terminal's line with ^C, from any thread",
}
"""What goes around the room, by file and name, each with its reason."""


def uses(source: str) -> Iterator[str]:
    """The names in a source that print, or make texts for readers."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=function) if (name := _dotted(function)) in CALLS:
                yield name
            case ast.Attribute() if (name := _dotted(node)) in STREAMS:
                yield name
            case ast.Import(names=names):
                yield from (name.name for name in names if _is_guarded(name.name))
            case ast.ImportFrom(module=str(module), names=names):
                if _is_guarded(module):
                    yield module
                yield from (full for name in names if (full := f"{module}.{name.name}") in {*STREAMS, *CALLS})
            case _:
                pass


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
        case _:
            return ""


def _is_guarded(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in MODULES)


def around_the_room() -> set[tuple[str, str]]:
    paths = [path for room in ("streaming", "coordinator_logic") for path in (ROOT / room).rglob("*.py")]
    files = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    return {(file, name) for file, text in files.items() if not file.startswith(ROOM) for name in uses(text)}


def test_nothing_goes_around_the_room_but_for_the_reasons_given() -> None:
    assert around_the_room() == set(EXCEPTIONS)


@pytest.mark.parametrize(
    "source",
    [
        "print('a')",
        "import sys\nsys.stdout.write('a')",
        "from sys import stderr",
        "import rich",
        "from rich.console import Console",
        "import typer\ntyper.echo('a')",
        "import logging\nlogging.basicConfig()",
        "from html import escape",
        "import csv",
    ],
)
def test_each_way_around_is_found(source: str) -> None:
    assert list(uses(source))


def test_commands_make_no_json_of_their_own() -> None:
    made = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "streaming" / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (name := _dotted(node.func)) in {"json.dumps", "json.dump", "msgspec.json.encode", "msgspec.json.format"}
    }
    assert made == set()
