"""Groups as the coordinator describes them, as text: classic groups and consumer groups (KIP-848)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from coordinator_logic.consumer_protocol import ConsumerProtocolError, TopicPartition, decode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.group import CLASSIC_TYPE, CONSUMER_TYPE
from coordinator_logic.messages import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
)
from coordinator_logic.messages.consumer_groups import CLASSIC_MEMBER
from streaming.cli.console import out
from streaming.client import CoordinatorClient

AnyDescribedGroup = DescribedGroup | DescribedConsumerGroup

NOTHING = "-"

CONSUMER_COLUMNS = (
    "MEMBER",
    "INSTANCE",
    "CLIENT",
    "HOST",
    "PROTOCOL",
    "EPOCH",
    "SUBSCRIPTION",
    "ASSIGNMENT",
    "CHANGES",
)


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


def headline(group: AnyDescribedGroup) -> tuple[str, str]:
    """A group's id, and the rest of its headline: its state, its protocol or epochs, and its number of members."""
    if isinstance(group, DescribedGroup):
        what = f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"
    else:
        what = f"consumer group, epoch {group.group_epoch}"
        if group.assignment_epoch != group.group_epoch:
            what += f", target of epoch {group.assignment_epoch}"
        what += f", {group.assignor_name}" if group.assignor_name else ""
    return group.group_id, f": {group.group_state} ({what}), {len(group.members)} member(s)"


def lines_of_members(group: AnyDescribedGroup) -> Iterator[str]:
    """The members of a group with their assignments, a line for each."""
    if isinstance(group, DescribedGroup):
        for classic in group.members:
            instance = f", instance {classic.group_instance_id}" if classic.group_instance_id else ""
            yield f"{classic.member_id} ({classic.client_id} at {classic.client_host}{instance})"
            yield from (f"    {line}" for line in classic_assignment(group.protocol_type, classic).splitlines())
        return
    for member in members_of(group):
        instance = "" if member.instance == NOTHING else f", instance {member.instance}"
        protocol = "" if member.protocol == CONSUMER_TYPE else f", {member.protocol} protocol"
        yield f"{member.member_id} ({member.client} at {member.host}{instance}{protocol}), epoch {member.epoch}"
        yield from (f"    {line}" for line in member.assignment.splitlines())
        yield from (f"    {line}" for line in member.changes.splitlines() if line != NOTHING)


# ---- classic groups --------------------------------------------------------------------------------------------


def _classic_row(protocol_type: str, member: DescribedMember) -> tuple[str, ...]:
    instance = member.group_instance_id or NOTHING
    return (
        member.member_id,
        instance,
        member.client_id,
        member.client_host,
        classic_assignment(protocol_type, member),
    )


def classic_assignment(protocol_type: str, member: DescribedMember) -> str:
    """A consumer's assignment as ``topic: 0, 1``; an assignment of any other protocol type by its size."""
    assignment = member.member_assignment
    if not assignment:
        return NOTHING
    if protocol_type != "consumer":
        return f"{len(assignment)} bytes"
    try:
        partitions = decode_assignment(assignment).partitions
    except ConsumerProtocolError:
        return f"{len(assignment)} bytes, unreadable"
    return "\n".join(_by_topic(partitions)) or NOTHING


# ---- consumer groups -------------------------------------------------------------------------------------------


class MemberText(NamedTuple):
    """A member of a consumer group, in the order of the table's columns.

    ``assignment`` includes what it has yet to revoke. ``changes`` says what it has yet to revoke, what it gets with its
    next heartbeats, and for whom it waits.
    """

    member_id: str
    instance: str
    client: str
    host: str
    protocol: str
    epoch: str
    subscription: str
    assignment: str
    changes: str


def members_of(group: DescribedConsumerGroup) -> Iterator[MemberText]:
    """The members of a consumer group as text."""
    held = {member.member_id: _places(member.assignment) for member in group.members}
    holders = {place: member_id for member_id, places in held.items() for place in places}
    for member in group.members:
        yield MemberText(
            member.member_id,
            member.instance_id or NOTHING,
            member.client_id,
            member.client_host,
            CLASSIC_TYPE if member.member_type == CLASSIC_MEMBER else CONSUMER_TYPE,
            str(member.member_epoch),
            _subscription(member),
            "\n".join(_by_topic(held[member.member_id])) or NOTHING,
            "\n".join(_changes(member, holders)) or NOTHING,
        )


def _subscription(member: DescribedConsumer) -> str:
    pattern = [f"pattern {member.subscribed_topic_regex}"] if member.subscribed_topic_regex else []
    return "\n".join([*member.subscribed_topic_names, *pattern]) or NOTHING


def _changes(member: DescribedConsumer, holders: Mapping[TopicPartition, str]) -> Iterator[str]:
    has, target = _places(member.assignment), _places(member.target_assignment)
    yield from (f"revokes {line}" for line in _by_topic(has - target))
    missing = target - has
    yield from (f"gets {line}" for line in _by_topic(missing - holders.keys()))
    for other in sorted({holders[place] for place in missing & holders.keys()}):
        awaited = {place for place in missing if holders.get(place) == other}
        yield from (f"waits for {other} to revoke {line}" for line in _by_topic(awaited))


def _places(assignment: DescribedAssignment) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    }


def _by_topic(places: Iterable[TopicPartition]) -> list[str]:
    """A line for each topic: ``orders: 0, 1``."""
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(places):
        by_topic.setdefault(topic, []).append(str(number))
    return [f"{topic}: {', '.join(numbers)}" for topic, numbers in by_topic.items()]
