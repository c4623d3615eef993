"""What the coordinator says of a consumer group (KIP-848), in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import DescribedAssignment, DescribedConsumer, DescribedConsumerGroup
from coordinator_logic.messages.consumer_groups import CLASSIC_MEMBER
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.client import CoordinatorClient
from streaming.explain.live.group_types.description import NOTHING, MemberNow, by_topic


class ConsumerDescription:
    """Describes consumer groups."""

    ANSWER = DescribedConsumerGroup

    def ask(self, client: CoordinatorClient, group_ids: Sequence[str]) -> Sequence[DescribedConsumerGroup]:
        """The answers of ConsumerGroupDescribe."""
        return client.describe_consumer_groups(group_ids).groups

    def protocol(self, group: DescribedConsumerGroup) -> str:
        """The epochs and the assignor."""
        what = f"consumer group, epoch {group.group_epoch}"
        if group.assignment_epoch != group.group_epoch:
            what += f", target of epoch {group.assignment_epoch}"
        return what + (f", {group.assignor_name}" if group.assignor_name else "")

    def members(self, group: DescribedConsumerGroup) -> list[MemberNow]:
        """The members of a group."""
        return [_member(member) for member in members_of(group)]


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
            "\n".join(by_topic(held[member.member_id])) or NOTHING,
            "\n".join(_changes(member, holders)) or NOTHING,
        )


def _subscription(member: DescribedConsumer) -> str:
    pattern = [f"pattern {member.subscribed_topic_regex}"] if member.subscribed_topic_regex else []
    return "\n".join([*member.subscribed_topic_names, *pattern]) or NOTHING


def _changes(member: DescribedConsumer, holders: Mapping[TopicPartition, str]) -> Iterator[str]:
    has, target = _places(member.assignment), _places(member.target_assignment)
    yield from (f"revokes {line}" for line in by_topic(has - target))
    missing = target - has
    yield from (f"gets {line}" for line in by_topic(missing - holders.keys()))
    for other in sorted({holders[place] for place in missing & holders.keys()}):
        awaited = {place for place in missing if holders.get(place) == other}
        yield from (f"waits for {other} to revoke {line}" for line in by_topic(awaited))


def _places(assignment: DescribedAssignment) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    }


def _member(member: MemberText) -> MemberNow:
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
