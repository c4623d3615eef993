"""The table of what a writer of each topic can do, in docs/security.md: every topic has a row, every row its tests."""

import ast
import re
from pathlib import Path

from streaming.contract.topics import TopicNames

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"## What a writer of each topic can do\n(.*?)\n## ", re.DOTALL)
ROW = re.compile(r"^\| `(group-[a-z]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, str]:
    """The last cell of each row, by topic."""
    section = SECTION.search((ROOT / "docs" / "security.md").read_text())
    assert section is not None
    return {topic: tests for topic, _can, _cannot, tests in ROW.findall(section[1])}


def test_every_topic_of_the_coordinator_has_a_row() -> None:
    assert set(rows()) == TopicNames().all


def test_every_row_names_tests_that_exist() -> None:
    for topic, cell in rows().items():
        named = TEST.findall(cell)
        assert named, topic
        assert len(named) == cell.count("tests/"), topic
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text())
            assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, (file, name)


def test_nothing_reads_the_rejects() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "streaming").rglob("*.py")
        if re.search(r"(topics|names)\.rejects\b", path.read_text())
    }
    assert users == {
        "streaming/job/rows/writing.py",  # which writes it
        "streaming/job/topics/layout.py",  # which creates it
    }
