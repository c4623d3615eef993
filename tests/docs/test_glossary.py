"""Every name in the last column of the glossary exists, as code, a topic, an option or a command.

A name of code may be anywhere in the two packages.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from streaming.contract.topics import TopicNames
from tests.cli.test_help import COMMANDS
from tests.docs.markdown import ROOT
from tests.docs.test_options import DEFAULTS

GLOSSARY = ROOT / "docs" / "glossary.md"
LINES = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("|")][2:]
ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in LINES]
"""Each row: the word, the term of Kafka or Spark, the meaning here."""

TOPICS = {getattr(TopicNames(), name) for name, value in vars(TopicNames).items() if isinstance(value, property)}


def names_of_code() -> Iterator[str]:
    """The modules of the two packages, and the classes, functions and constants in them."""
    for package in ("coordinator_logic", "streaming"):
        for path in (ROOT / package).rglob("*.py"):
            yield path.parent.name if path.name == "__init__.py" else path.stem
            module = ast.parse(path.read_text())
            for node in ast.walk(module):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield node.name
            for statement in module.body:
                if isinstance(statement, ast.Assign):
                    yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
                elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield statement.target.id


KNOWN = {*names_of_code(), *TOPICS, *DEFAULTS, *map(" ".join, COMMANDS)}


def test_the_words_are_in_alphabetical_order_and_each_has_a_meaning() -> None:
    words = [word.lower() for word, _, _ in ROWS]
    assert len(words) >= 40
    assert words == sorted(set(words))
    assert all(meaning for _, _, meaning in ROWS)


@pytest.mark.parametrize(("word", "meaning"), [(word, meaning) for word, _, meaning in ROWS])
def test_every_name_in_the_last_column_exists(word: str, meaning: str) -> None:
    names = {name.removeprefix("group-coordinator ") for name in re.findall(r"`([^`]+)`", meaning)}
    assert names <= KNOWN, word
