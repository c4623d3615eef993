"""One group as the coordinator describes it now: its state, its members with their partitions, and its offsets."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    DescribedConsumerGroup,
    DescribedGroup,
    FetchedGroup,
    GroupToFetch,
)
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.client import CoordinatorClient
from streaming.client.errors import error_of
from streaming.explain.live.described import (
    NOTHING,
    AnyDescribedGroup,
    MemberText,
    classic_assignment,
    members_of,
    protocol_of,
)

__all__ = [
    "CommittedPosition",
    "GroupNow",
    "MemberNow",
    "classic_group",
    "consumer_group",
    "description",
    "groups_now",
    "offsets_now",
    "one_group_now",
]


class MemberNow(NamedTuple):
    """A member. ``assignment`` is its partitions, a line for each topic; ``-`` if it has none.

    In a consumer group, lines about what it revokes, gets and waits for follow, and ``standing`` is its member epoch,
    with the protocol if that is the classic one.
    """

    member_id: str
    instance_id: str
    client_id: str
    client_host: str
    assignment: str
    standing: str = ""


class CommittedPosition(NamedTuple):
    """A committed offset."""

    topic: str
    partition: int
    offset: int


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
    """The groups of these ids, whose types are ``classic`` or ``consumer``, in any order; a request for each.

    Raises CoordinatorError if the coordinator does not answer.
    """
    newer = [group_id for group_id, group_type in types.items() if group_type == CONSUMER_TYPE]
    others = [group_id for group_id, group_type in types.items() if group_type != CONSUMER_TYPE]
    classic = (classic_group(group) for group in client.describe_groups(others).groups)
    consumer = (consumer_group(group) for group in client.describe_consumer_groups(newer).groups)
    return {group.group_id: group for group in (*classic, *consumer)}


def one_group_now(client: CoordinatorClient, group_id: str) -> GroupNow:
    """The group of this id, of whichever type it is. Raises as :func:`groups_now`."""
    found = groups_now(client, {group_id: CLASSIC_TYPE})[group_id]
    if found.error == Error.GROUP_ID_NOT_FOUND.name:
        return groups_now(client, {group_id: CONSUMER_TYPE})[group_id]
    return found


def offsets_now(client: CoordinatorClient, group_id: str) -> list[CommittedPosition] | str:
    """A group's committed offsets, sorted, or the name of the coordinator's error. Raises as :func:`groups_now`."""
    fetched = client.offset_fetch([GroupToFetch(group_id)]).groups[0]
    return error_of(fetched.error_code).name if fetched.error_code else _positions(fetched)


def classic_group(group: DescribedGroup) -> GroupNow:
    """A group as DescribeGroups answers."""
    members = [
        MemberNow(
            member.member_id,
            member.group_instance_id or "",
            member.client_id,
            member.client_host,
            classic_assignment(group.protocol_type, member),
        )
        for member in group.members
    ]
    return _group(group, CLASSIC_TYPE, members)


def consumer_group(group: DescribedConsumerGroup) -> GroupNow:
    """A group as ConsumerGroupDescribe answers."""
    return _group(group, CONSUMER_TYPE, [_consumer_member(member) for member in members_of(group)])


def _group(group: AnyDescribedGroup, group_type: str, members: list[MemberNow]) -> GroupNow:
    return GroupNow(
        group_id=group.group_id,
        error=error_of(group.error_code).name if group.error_code else "",
        state=group.group_state,
        group_type=group_type,
        protocol=protocol_of(group),
        members=members,
    )


def _consumer_member(member: MemberText) -> MemberNow:
    standing = f"epoch {member.epoch}"
    if member.protocol != CONSUMER_TYPE:
        standing = f"{member.protocol} protocol, {standing}"
    return MemberNow(
        member.member_id,
        "" if member.instance == NOTHING else member.instance,
        member.client,
        member.host,
        member.assignment if member.changes == NOTHING else f"{member.assignment}\n{member.changes}",
        standing,
    )


def description(group: GroupNow, offsets: list[CommittedPosition] | str) -> str:
    """The group as text."""
    if group.error:
        return group.error
    lines = [f"{group.group_id}: {group.state} ({group.protocol}), {len(group.members)} member(s)", ""]
    for member in group.members:
        instance = f", instance {member.instance_id}" if member.instance_id else ""
        standing = f", {member.standing}" if member.standing else ""
        lines.append(f"{member.member_id} ({member.client_id} at {member.client_host}{instance}){standing}")
        lines += [f"    {line}" for line in member.assignment.splitlines()]
    return "\n".join([*lines, "", *_offset_lines(offsets)])


def _offset_lines(offsets: list[CommittedPosition] | str) -> list[str]:
    if isinstance(offsets, str):
        return [f"offsets: {offsets}"]
    lines = [f"    {each.topic}:{each.partition} = {each.offset}" for each in offsets]
    return ["committed offsets:", *lines] if lines else ["no committed offsets"]


def _positions(fetched: FetchedGroup) -> list[CommittedPosition]:
    return sorted(
        CommittedPosition(topic.name, partition.partition_index, partition.committed_offset)
        for topic in fetched.topics
        for partition in topic.partitions
    )
