"""The requests that clients send, and those that the group must refuse in a state."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import STATIC_LEAVE_EPOCH
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    PartitionToCommit,
    RequestBody,
    TopicIdPartitions,
    TopicToCommit,
)
from tests.logic.exhaustive.consumers.world import GROUP_ID, Client, Partition, places

REVOKE_MS = 10_000
ABSENT = "_" * 22


class Refused(NamedTuple):
    """A request that must be refused, with the expected error."""

    name: str
    body: RequestBody
    expected: Error


def heartbeat(client: Client, epoch: int, owned: Iterable[Partition] | None = None, **fields: Any) -> RequestBody:
    """A heartbeat of a client."""
    return ConsumerGroupHeartbeatRequest(
        GROUP_ID, client.member_id, epoch, client.instance_id, topic_partitions=_listed(owned), **fields
    )


def full_heartbeat(client: Client, epoch: int, **subscription: Any) -> RequestBody:
    """A heartbeat with all fields."""
    return heartbeat(client, epoch, client.owned, rebalance_timeout_ms=REVOKE_MS, **subscription)


def _listed(owned: Iterable[Partition] | None) -> list[TopicIdPartitions] | None:
    if owned is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for each, partition in sorted(owned):
        by_topic.setdefault(each, []).append(partition)
    return [TopicIdPartitions(each, numbers) for each, numbers in by_topic.items()]


def commit(client: Client, epoch: int, name: str, partition: int, metadata: str = "") -> RequestBody:
    """A commit of one partition of a topic."""
    topics = [TopicToCommit(name, [PartitionToCommit(partition, 7, committed_metadata=metadata)])]
    return OffsetCommitRequest(GROUP_ID, topics, epoch, client.member_id)


def refusals(consumer: ConsumerGroup | None, clients: Iterable[Client]) -> Iterator[Refused]:
    """Requests that no correct client sends, and late requests of clients that are no longer members."""
    stranger = Client("stranger")
    is_absent = consumer is None
    unknown = Error.GROUP_ID_NOT_FOUND if is_absent else Error.UNKNOWN_MEMBER_ID
    yield Refused("a stranger stays", heartbeat(stranger, 3), unknown)
    yield Refused("a stranger leaves", heartbeat(stranger, -1), unknown)
    if consumer is None:
        return
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    for client in clients:
        if client.epoch is not None and client.member_id not in consumer.members and consumer.members:
            for each, partition in client.owned:
                late = commit(client, client.epoch, names.get(each, "t"), partition)
                yield Refused(f"{client.member_id}, which was fenced, commits", late, Error.UNKNOWN_MEMBER_ID)
    for member in consumer.members.values():
        yield from _of_member(consumer, member, names)


def _of_member(consumer: ConsumerGroup, member: ConsumerMember, names: dict[str, str]) -> Iterator[Refused]:
    client = Client(member.member_id, member.group_instance_id)
    fenced = Error.FENCED_MEMBER_EPOCH
    stale = Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION
    yield Refused("an epoch of the future", heartbeat(client, consumer.epoch + 1, ()), fenced)
    yield Refused("a commit of the future", commit(client, consumer.epoch + 1, "t", 0), stale)
    if member.epoch > 1:
        yield Refused("an older epoch, and not what it owns", heartbeat(client, member.epoch - 1), fenced)
        other = [(ABSENT, 7)]
        yield Refused("an older epoch, and what it was not given", heartbeat(client, member.epoch - 1, other), fenced)
        if member.previous_epoch != 1:
            yield Refused("an epoch before the previous one", heartbeat(client, 1, ()), fenced)
        yield Refused("an older commit of what it has not", commit(client, member.epoch - 1, "absent", 0), stale)
    for held in (member.assigned, member.pending_revocation):
        for each, numbers in held.items():
            for partition, epoch in numbers.items():
                if epoch > 1 and each in names:
                    late = commit(client, epoch - 1, names[each], partition)
                    yield Refused("a commit from before it got the partition", late, stale)
    if member.group_instance_id is not None:
        yield from _of_other_process(member)


def _of_other_process(member: ConsumerMember) -> Iterator[Refused]:
    """Requests of another process that has the member's instance id."""
    other = Client("another process", member.group_instance_id)
    taken = Error.FENCED_INSTANCE_ID
    yield Refused("another process of the instance stays", heartbeat(other, max(member.epoch, 1)), taken)
    yield Refused("another process of the instance leaves", heartbeat(other, -1), taken)
    yield Refused("another process of the instance leaves for a while", heartbeat(other, STATIC_LEAVE_EPOCH), taken)
    if member.epoch != STATIC_LEAVE_EPOCH:
        joins = full_heartbeat(other, 0, subscribed_topic_names=["t"])
        yield Refused("another process of the instance joins", joins, Error.UNRELEASED_INSTANCE_ID)


def may_commit(client: Client, consumer: ConsumerGroup) -> Iterator[RequestBody]:
    """Commits of what a client owns, which the group must accept while the client is a member.

    Their metadata is too long, so that they are refused with OFFSET_METADATA_TOO_LARGE after the check of the member.
    """
    member = consumer.members.get(client.member_id)
    if client.epoch is None or member is None or member.epoch == STATIC_LEAVE_EPOCH:
        return
    names = {topic.topic_id: name for name, topic in consumer.topics.items()}
    for each, partition in client.owned & (places(member.assigned) | places(member.pending_revocation)):
        yield commit(client, client.epoch, names[each], partition, metadata="too long")
