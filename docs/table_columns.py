"""The rows of the table of tables in docs/tables.md."""

import inspect

from streaming.explain.tables.columns import columns_of
from streaming.explain.tables.tables import TABLES


def markdown() -> str:
    """A row for each table: its name, what a row is, and its columns."""
    head = "| table | a row | columns |\n|---|---|---|\n"
    return head + "".join(
        f"| `{name}` | {_first_sentence(row_type)} | {', '.join(f'`{column}`' for column in columns_of(row_type))} |\n"
        for name, row_type in TABLES.items()
    )


def _first_sentence(row_type: type) -> str:
    text = " ".join(inspect.cleandoc(row_type.__doc__ or "").split())
    return text.partition(". ")[0].partition(";")[0].rstrip(".").replace("``", "`")
