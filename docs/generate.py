"""Writes the generated parts of the documents, and Grafana's dashboards: `python -m docs.generate`.

A generated part is the text between two comment lines with its name. Everything else is written by hand.
"""

import re
from pathlib import Path

from docs import (
    answers_by_state,
    api_versions,
    dashboards,
    kafka_tests,
    message_tables,
    option_tables,
    role_rights,
    slow_batches,
    spark_internals,
    state_diagram,
    table_columns,
)
from streaming.cli.exit_codes import EXIT_CODES
from streaming.explain.publishing.contract import REBALANCES

ROOT = Path(__file__).resolve().parent.parent


def _generated() -> dict[Path, dict[str, str]]:
    return {
        ROOT / "docs" / "architecture.md": {"state machine": f"```mermaid\n{state_diagram.mermaid()}\n```\n"},
        ROOT / "docs" / "kafka_tests.md": kafka_tests.lists(),
        ROOT / "docs" / "messages.md": {
            "apis": api_versions.markdown(),
            "answers by state": answers_by_state.markdown(),
            "reference": message_tables.markdown([REBALANCES]),
        },
        ROOT / "docs" / "options.md": option_tables.tables(),
        ROOT / "docs" / "security.md": {
            "roles": role_rights.roles_markdown(),
            "rights": role_rights.rights_markdown(),
            "operations": role_rights.operations_markdown(),
        },
        ROOT / "docs" / "tables.md": {"tables": table_columns.markdown()},
        ROOT / "docs" / "operations" / "reference.md": {
            "exit codes": exit_codes_markdown(),
            "slow batches": slow_batches.markdown(),
            "spark internals": spark_internals.markdown(),
            "spark versions": spark_internals.trials_markdown(),
        },
    }


def exit_codes_markdown() -> str:
    """A row for each exit code."""
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    return f"| code | meaning |\n|---|---|\n{rows}"


def _whole_files() -> dict[Path, str]:
    return {ROOT / "deploy" / "grafana" / f"{name}.json": text for name, text in dashboards.files().items()}


def with_generated_parts(text: str, parts: dict[str, str]) -> str:
    """Replace the generated parts of a document; raises ValueError if the document has no place for one."""
    for name, content in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
        place = re.search(re.escape(begin) + ".*?" + re.escape(end), text, re.DOTALL)
        if place is None:
            raise ValueError(f"the document has no place for the generated part {name!r}")
        text = text[: place.start()] + begin + content + end + text[place.end() :]
    return text


def outdated() -> list[Path]:
    """List the documents whose generated parts are no longer what the code generates."""
    parts = [path for path, parts in _generated().items() if _rewritten(path, parts) != path.read_text()]
    return parts + [path for path, text in _whole_files().items() if not path.exists() or path.read_text() != text]


def _rewritten(path: Path, parts: dict[str, str]) -> str:
    return with_generated_parts(path.read_text(), parts)


if __name__ == "__main__":
    for document, generated_parts in _generated().items():
        document.write_text(_rewritten(document, generated_parts))
    for file, content in _whole_files().items():
        file.write_text(content)
