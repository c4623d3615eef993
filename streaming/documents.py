"""Keeps the generated parts of the documents current: `python -m streaming.documents` writes them.

A generated part stands between two comment lines that name it; everything else is written by hand.
"""

import re
from pathlib import Path

from coordinator_logic.states import mermaid
from streaming.schema import markdown_reference

ROOT = Path(__file__).resolve().parent.parent


def _generated() -> dict[Path, dict[str, str]]:
    return {
        ROOT / "README.md": {"state machine": f"```mermaid\n{mermaid()}\n```\n"},
        ROOT / "streaming" / "MESSAGES.md": {"reference": markdown_reference()},
    }


def with_generated_parts(text: str, parts: dict[str, str]) -> str:
    """The document with its generated parts replaced; raises ValueError if one has no place in it."""
    for name, content in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
        place = re.search(re.escape(begin) + ".*?" + re.escape(end), text, re.DOTALL)
        if place is None:
            raise ValueError(f"the document has no place for the generated part {name!r}")
        text = text[: place.start()] + begin + content + end + text[place.end() :]
    return text


def outdated() -> list[Path]:
    """The documents whose generated parts no longer say what the code says."""
    return [path for path, parts in _generated().items() if _rewritten(path, parts) != path.read_text()]


def _rewritten(path: Path, parts: dict[str, str]) -> str:
    return with_generated_parts(path.read_text(), parts)


if __name__ == "__main__":
    for document, generated_parts in _generated().items():
        document.write_text(_rewritten(document, generated_parts))
