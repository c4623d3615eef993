"""The documents of the project, and the headings and links in their Markdown."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])

_LINK = re.compile(r"\]\((?!https?:)([^)#]*(?:#[^)]*)?)\)")


def name_of(document: Path) -> str:
    """The path of a document from the root of the project, such as ``docs/tables.md``."""
    return document.relative_to(ROOT).as_posix()


def titles(document: Path) -> list[str]:
    """The headings of a document, in order."""
    return re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The names by which links reach the headings of a document."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles(document)}


def links(document: Path) -> list[str]:
    """The targets of a document's links within the project, each with its ``#anchor`` if it has one."""
    return _LINK.findall(document.read_text())
