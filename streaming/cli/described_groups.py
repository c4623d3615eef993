"""Groups as the coordinator describes them, printed."""

from rich.markup import escape
from rich.table import Table

from streaming.cli.console import out
from streaming.cli.group_types import MEMBER_TABLES
from streaming.client.group_types import AnyDescribedGroup, type_of
from streaming.explain.live.group import headline

__all__ = ["print_group"]


def print_group(group: AnyDescribedGroup) -> None:
    """Print a group as a headline and a table of its members."""
    if group.error_code:
        return
    name, rest = headline(group)
    out.print(f"[bold]{name}[/bold]{rest}")
    if group.members:
        members = MEMBER_TABLES[type_of(group)]
        table = Table(*members.columns)
        for row in members.rows(group):
            # Parts of patterns, such as [a-z], would be read as markup.
            table.add_row(*map(escape, row))
        out.print(table)
