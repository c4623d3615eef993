"""What the coordinator says of a group, in words: classic groups and consumer groups (KIP-848)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from coordinator_logic.embedded_protocols import ConsumerProtocolError, TopicPartition, decode_assignment
from coordinator_logic.messages import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
)
from coordinator_logic.messages.consumer_groups import CLASSIC_MEMBER
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE

__all__ = ["NOTHING", "AnyDescribedGroup", "MemberText", "classic_assignment", "headline", "members_of", "protocol_of"]

AnyDescribedGroup = DescribedGroup | DescribedConsumerGroup

NOTHING = "-"


def headline(group: AnyDescribedGroup) -> tuple[str, str]:
    """A group's id, and the rest of its headline: its state, its protocol or epochs, and its number of members."""
    return group.group_id, f": {group.group_state} ({protocol_of(group)}), {len(group.members)} member(s)"


def protocol_of(group: AnyDescribedGroup) -> str:
    """A classic group's protocol type and protocol; a consumer group's epochs and assignor."""
    if isinstance(group, DescribedGroup):
        return f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"
    what = f"consumer group, epoch {group.group_epoch}"
    if group.assignment_epoch != group.group_epoch:
        what += f", target of epoch {group.assignment_epoch}"
    return what + (f", {group.assignor_name}" if group.assignor_name else "")


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
