"""What a described group of each type says: the one place of the room that looks it up by the type."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator_logic.embedded_protocols import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolError,
    TopicPartition,
    decode_assignment,
    subscribed_topics,
)
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.messages import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
)
from coordinator_logic.messages.consumer_groups import CLASSIC_MEMBER
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.client import CoordinatorClient
from streaming.client.group_types import AnyDescribedGroup
from streaming.contract.output.text import counted, printable

NOTHING = "-"


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


class Holder(NamedTuple):
    """A member that has a partition."""

    partition: TopicPartition
    member_id: str
    client_id: str
    client_host: str


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


def classic_partitions(protocol_type: str, member: DescribedMember) -> list[TopicPartition] | None:
    """What a consumer is assigned; None for a member of any other protocol type, and for bytes that are unreadable."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        return decode_assignment(member.member_assignment).partitions if member.member_assignment else []
    except ConsumerProtocolError:
        return None


def classic_assignment(protocol_type: str, member: DescribedMember) -> str:
    """A consumer's assignment as ``topic: 0, 1``; an assignment of any other protocol type by its size."""
    size, partitions = len(member.member_assignment), classic_partitions(protocol_type, member)
    if partitions is None and size:
        return counted(size, "byte") + (", unreadable" if protocol_type == CONSUMER_PROTOCOL_TYPE else "")
    return "\n".join(_by_topic(partitions or ())) or NOTHING


def members_of(group: DescribedConsumerGroup) -> Iterator[MemberText]:
    """The members of a consumer group as text, by their ids."""
    held = {member.member_id: _places(member.assignment) for member in group.members}
    holders = {place: member_id for member_id, places in held.items() for place in places}
    for member in sorted(group.members, key=lambda each: each.member_id):
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


def _classic_protocol(group: DescribedGroup) -> str:
    return f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"


def _classic_members(group: DescribedGroup) -> list[MemberNow]:
    return [
        MemberNow(
            member.member_id,
            member.group_instance_id or "",
            member.client_id,
            member.client_host,
            classic_assignment(group.protocol_type, member),
        )
        for member in group.members
    ]


def _consumer_protocol(group: DescribedConsumerGroup) -> str:
    what = f"consumer group, epoch {group.group_epoch}"
    if group.assignment_epoch != group.group_epoch:
        what += f", target of epoch {group.assignment_epoch}"
    return what + (f", {group.assignor_name}" if group.assignor_name else "")


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


def _subscription(member: DescribedConsumer) -> str:
    pattern = [f"pattern {member.subscribed_topic_regex}"] if member.subscribed_topic_regex else []
    return "\n".join(map(printable, [*member.subscribed_topic_names, *pattern])) or NOTHING


def _changes(member: DescribedConsumer, holders: Mapping[TopicPartition, str]) -> Iterator[str]:
    has, target = _places(member.assignment), _places(member.target_assignment)
    yield from (f"revokes {line}" for line in _by_topic(has - target))
    missing = target - has
    yield from (f"gets {line}" for line in _by_topic(missing - holders.keys()))
    for other in sorted({holders[place] for place in missing & holders.keys()}):
        awaited = {place for place in missing if holders.get(place) == other}
        yield from (f"waits for {printable(other)} to revoke {line}" for line in _by_topic(awaited))


def _places(assignment: DescribedAssignment) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    }


def _by_topic(places: Iterable[TopicPartition]) -> list[str]:
    """A line for each topic: ``orders: 0, 1``. No name of a topic breaks its line."""
    grouped = grouped_by_topic(sorted(places))
    return [f"{printable(topic)}: {', '.join(map(str, numbers))}" for topic, numbers in grouped.items()]


def _classic_data(group: DescribedGroup) -> dict[str, Any]:
    """The group as JSON: what a consumer sends and gets as topics and partitions, other members' bytes as base64."""
    data: dict[str, Any] = msgspec.to_builtins(group)
    for member, shown in zip(group.members, data["members"], strict=True):
        metadata, assignment = shown.pop("memberMetadata"), shown.pop("memberAssignment")
        topics, partitions = _subscribed(group.protocol_type, member), classic_partitions(group.protocol_type, member)
        if topics is None:
            shown["metadataBase64"] = metadata
        else:
            shown["subscribedTopicNames"] = topics
        if partitions is None:
            shown["assignmentBase64"] = assignment
        else:
            grouped = grouped_by_topic(sorted(partitions)).items()
            shown["assignment"] = {
                "topicPartitions": [{"topicName": topic, "partitions": list(numbers)} for topic, numbers in grouped]
            }
    return data


def _subscribed(protocol_type: str, member: DescribedMember) -> list[str] | None:
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        return sorted(subscribed_topics(member.member_metadata)) if member.member_metadata else []
    except ConsumerProtocolError:
        return None


def _classic_holders(group: DescribedGroup) -> Iterator[Holder]:
    for member in group.members:
        for partition in classic_partitions(group.protocol_type, member) or ():
            yield Holder(partition, member.member_id, member.client_id, member.client_host)


def _consumer_holders(group: DescribedConsumerGroup) -> Iterator[Holder]:
    for member in group.members:
        for partition in _places(member.assignment):
            yield Holder(partition, member.member_id, member.client_id, member.client_host)


class TypeDescription(NamedTuple):
    """Describes groups of one type, from the answers of the coordinator.

    ask: the answers for groups; raises CoordinatorError if the coordinator does not answer. protocol: how the members
    of a group share the partitions: a protocol type and a protocol, or epochs and an assignor. members: the members.
    data: the group as JSON, without bytes where the text has none. holders: which member has which partition.
    """

    ask: Callable[[CoordinatorClient, Sequence[str]], Sequence[AnyDescribedGroup]]
    protocol: Callable[[Any], str]
    members: Callable[[Any], list[MemberNow]]
    data: Callable[[Any], dict[str, Any]]
    holders: Callable[[Any], Iterable[Holder]]


DESCRIPTIONS: Mapping[str, TypeDescription] = {
    CLASSIC_TYPE: TypeDescription(
        lambda client, group_ids: client.describe_groups(group_ids).groups,
        _classic_protocol,
        _classic_members,
        _classic_data,
        _classic_holders,
    ),
    CONSUMER_TYPE: TypeDescription(
        lambda client, group_ids: client.describe_consumer_groups(group_ids).groups,
        _consumer_protocol,
        lambda group: [_consumer_member(member) for member in members_of(group)],
        msgspec.to_builtins,
        _consumer_holders,
    ),
}


def description_of(group_type: str) -> TypeDescription:
    """What describes groups of a type. A type that is not known is described as Kafka's first one."""
    return DESCRIPTIONS.get(group_type, DESCRIPTIONS[CLASSIC_TYPE])
