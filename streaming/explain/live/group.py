"""One group as the coordinator describes it now: its state, its members with their partitions, and its offsets."""

from collections.abc import Iterable, Mapping

import msgspec

from streaming.client import CoordinatorClient
from streaming.client.errors import error_of
from streaming.client.group_types import AnyDescribedGroup, type_of
from streaming.contract.output.text import counted, printable
from streaming.explain.live.group_types import MemberNow, TypeDescription, description_of
from streaming.explain.live.partitions import PARTITION_COLUMNS, PartitionNow, partitions_now


class GroupNow(msgspec.Struct, frozen=True, kw_only=True):
    """A group as described. ``error`` is the name of the coordinator's error, empty if there is none.

    ``protocol`` is the protocol type and the chosen protocol in words, of a consumer group its epochs and assignor.
    """

    group_id: str
    error: str = ""
    state: str = ""
    group_type: str = ""
    protocol: str = ""
    members: list[MemberNow] = []


def groups_now(client: CoordinatorClient, types: Mapping[str, str]) -> dict[str, GroupNow]:
    """The groups of these ids with their types, in any order; a request for each.

    Raises CoordinatorError if the coordinator does not answer.
    """
    by_type: dict[TypeDescription, list[str]] = {}
    for group_id, group_type in types.items():
        by_type.setdefault(description_of(group_type), []).append(group_id)
    answers = (answer for description, group_ids in by_type.items() for answer in description.ask(client, group_ids))
    return {answer.group_id: group_now(answer) for answer in answers}


def group_with_partitions(client: CoordinatorClient, group_id: str) -> tuple[GroupNow, list[PartitionNow]]:
    """The group of this id, and its partitions; none of a group with an error. Raises as :func:`groups_now`."""
    described = client.describe_any([group_id])
    partitions = partitions_now(client, described, client.request_timeout_ms / 1000)
    return group_now(described[0]), partitions.get(group_id, [])


def group_now(group: AnyDescribedGroup) -> GroupNow:
    """A group as the coordinator has answered."""
    group_type = type_of(group)
    described = description_of(group_type)
    return GroupNow(
        group_id=group.group_id,
        error=error_of(group.error_code).name if group.error_code else "",
        state=group.group_state,
        group_type=group_type,
        protocol=described.protocol(group),
        members=described.members(group),
    )


def headline(group: AnyDescribedGroup) -> tuple[str, str]:
    """A group's id, and the rest of its headline: its state, its protocol or epochs, and its number of members."""
    protocol = description_of(type_of(group)).protocol(group)
    return group.group_id, f": {group.group_state} ({protocol}), {counted(len(group.members), 'member')}"


def description(group: GroupNow, partitions: Iterable[PartitionNow]) -> str:
    """The group as text, in lines that no text of a client breaks."""
    if group.error:
        return group.error
    lines = [f"{group.group_id}: {group.state} ({group.protocol}), {counted(len(group.members), 'member')}", ""]
    for member in group.members:
        instance = f", instance {member.instance_id}" if member.instance_id else ""
        standing = f", {member.standing}" if member.standing else ""
        lines.append(f"{member.member_id} ({member.client_id} at {member.client_host}{instance}){standing}")
        lines += [f"    {line}" for line in member.assignment.splitlines()]
    return "\n".join(map(printable, [*lines, "", *_partition_lines(partitions)]))


def _partition_lines(partitions: Iterable[PartitionNow]) -> list[str]:
    rows = [tuple(map(printable, (*each.cells(), each.note))) for each in partitions]
    if not rows:
        return ["no committed offsets, and no member has a partition"]
    table = [(*PARTITION_COLUMNS, ""), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(_aligned, row, widths, range(len(row)))).rstrip() for row in table]


def _aligned(cell: str, width: int, place: int) -> str:
    return cell.rjust(width) if place in _NUMBERS else cell.ljust(width)


_NUMBERS = range(PARTITION_COLUMNS.index("PARTITION"), PARTITION_COLUMNS.index("OWNER"))
"""The places of the columns that are aligned to the right."""
