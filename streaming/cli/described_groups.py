"""Groups as the coordinator describes them, printed: classic groups and consumer groups (KIP-848)."""

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from coordinator_logic.errors import Error
from coordinator_logic.messages import DescribedConsumerGroup, DescribedMember
from streaming.cli.console import out
from streaming.client import CoordinatorClient
from streaming.explain.live.described import headline
from streaming.explain.live.group_types.classic import classic_assignment
from streaming.explain.live.group_types.consumer import members_of
from streaming.explain.live.group_types.description import NOTHING, AnyDescribedGroup

__all__ = ["describe", "print_group"]


def describe(client: CoordinatorClient, group_ids: Sequence[str]) -> list[AnyDescribedGroup]:
    """Ask for groups of any type, in this order; a missing group has GROUP_ID_NOT_FOUND (69).

    Raises :class:`~streaming.client.errors.CoordinatorError` without an answer.
    """
    found = client.describe_groups(group_ids).groups
    others = [group.group_id for group in found if group.error_code == Error.GROUP_ID_NOT_FOUND]
    consumers = {group.group_id: group for group in client.describe_consumer_groups(others).groups}
    return [
        consumers[group.group_id] if group.group_id in consumers and not consumers[group.group_id].error_code else group
        for group in found
    ]


def print_group(group: AnyDescribedGroup) -> None:
    """Print a group as a headline and a table of its members."""
    if group.error_code:
        return
    name, rest = headline(group)
    out.print(f"[bold]{name}[/bold]{rest}")
    if isinstance(group, DescribedConsumerGroup):
        table = Table(
            "MEMBER", "INSTANCE", "CLIENT", "HOST", "PROTOCOL", "EPOCH", "SUBSCRIPTION", "ASSIGNMENT", "CHANGES"
        )
        rows: Iterator[tuple[str, ...]] = (tuple(member) for member in members_of(group))
    else:
        table = Table("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT")
        rows = (_classic_row(group.protocol_type, member) for member in group.members)
    if group.members:
        for row in rows:
            # Parts of patterns, such as [a-z], would be read as markup.
            table.add_row(*map(escape, row))
        out.print(table)


def _classic_row(protocol_type: str, member: DescribedMember) -> tuple[str, ...]:
    instance = member.group_instance_id or NOTHING
    return (
        member.member_id,
        instance,
        member.client_id,
        member.client_host,
        classic_assignment(protocol_type, member),
    )
