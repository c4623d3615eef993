"""Who may commit and fetch offsets of a consumer group."""

from collections.abc import Iterable

from coordinator_logic.apis import OFFSET_COMMIT_FIRST_VERSION_OF_CONSUMER_MEMBERS
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import check_commit_epoch


def check_commit(
    consumer: ConsumerGroup, member_id: str, epoch: int, partitions: Iterable[tuple[str, int]], *, version: int | None
) -> Error:
    """Check that the sender may commit: as a member with its epoch, or while the group has no members.

    A member may use an older epoch for partitions that it has held since then (KIP-1251). As in Kafka, all partitions
    are refused if it may not for one of them.

    Args:
        consumer: The group.
        member_id: The sender's member id.
        epoch: Its member epoch; negative without a member.
        partitions: The partitions, by topic name.
        version: The version of OffsetCommit; None for an offset in a transaction.
    """
    if epoch < 0 and not consumer.members:
        return Error.NONE
    member = consumer.members.get(member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if member.classic is None and version is not None and version < OFFSET_COMMIT_FIRST_VERSION_OF_CONSUMER_MEMBERS:
        return Error.UNSUPPORTED_VERSION
    for name, partition in partitions:
        topic = consumer.topics.get(name)
        error = check_commit_epoch(member, epoch, "" if topic is None else topic.topic_id, partition)
        if error is not Error.NONE:
            return error if member.classic is None else Error.ILLEGAL_GENERATION
    return Error.NONE


def check_fetch(consumer: ConsumerGroup, member_id: str | None, epoch: int) -> Error:
    """Check that the sender may fetch offsets: without a member, or as a member with its epoch."""
    if member_id is None and epoch < 0:
        return Error.NONE
    member = None if member_id is None else consumer.members.get(member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return Error.NONE
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION
