"""No text that a person reads leaves the plural to the reader."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from streaming.gateway.groups.handlers.consumer_group_describe import HIDDEN_TOPICS

ROOT = Path(__file__).resolve().parents[3]

UNDECIDED = re.compile(r"\w\(s\)")
"""``member(s)``; a unit has a space before it."""


def _texts() -> Iterator[tuple[str, str]]:
    for path in sorted(path for room in ("streaming", "coordinator_logic") for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value
    for path in sorted((ROOT / "streaming").rglob("template/*")):
        yield from ((f"{path.relative_to(ROOT)}:{line}", text) for line, text in _lines_of(path) if "//" not in text)
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.y*ml"), ROOT / "README.md"]):
        yield from ((f"{path.relative_to(ROOT)}:{line}", text) for line, text in _lines_of(path))


def _lines_of(path: Path) -> Iterator[tuple[int, str]]:
    return enumerate(path.read_text().splitlines(), 1)


def test_a_number_comes_with_the_form_of_its_noun() -> None:
    found = {place: text for place, text in _texts() if UNDECIDED.search(text) and text != HIDDEN_TOPICS}
    assert found == {}
