"""ResetOffsets, an event that Kafka's wire protocol does not have: an operator sets a group's offsets.

Kafka's tools send OffsetCommit to a group without members. This request also compares the offsets with those that the
operator has seen, deletes offsets, gives a reason, and reaches a group with members.

The type of the group says how its members are made to give up their partitions and fetch the new offsets
(:meth:`~coordinator_logic.groups.group_type.GroupType.restart_members`), and when that cannot be
(:meth:`~coordinator_logic.group.part.GroupPart.check_reset`): a cooperative member between JoinGroup and the answer to
its SyncGroup, for example, keeps its partitions whatever it is answered.
"""

from collections.abc import Iterator

from coordinator_logic.errors import Error, Refusal
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.messages import (
    NO_LEADER_EPOCH,
    NO_OFFSET,
    PartitionToReset,
    ResetOffsetsRequest,
    ResetOffsetsResponse,
    ResetPartition,
    ResetTopic,
    TopicToReset,
)
from coordinator_logic.offsets.committing import is_metadata_too_large
from coordinator_logic.records import OffsetCommitted, OffsetsCommitted, OffsetsDeleted, TopicPartitions
from coordinator_logic.sizes import LONGEST_REASON
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

_DIFFERS = Refusal(Error.INVALID_UPDATE_VERSION, "The committed offsets are not the expected ones.")
_PENDING = Refusal(Error.UNSTABLE_OFFSET_COMMIT, "Open transactions have offsets of these partitions.")


def handle(turn: Turn, request: Request, body: ResetOffsetsRequest) -> None:
    """Set the offsets, or change nothing and say why."""
    refusal = _invalid(turn, body) or _not_now(turn.existing, body)
    if refusal is not None:
        turn.reply(request.address, ResetOffsetsResponse(*refusal))
        return
    topics = _examined(turn.existing, body)
    refusal = _conflict(topics)
    if refusal is not None:
        turn.reply(request.address, ResetOffsetsResponse(*refusal, topics=topics))
        return
    rejoining = _reset(turn, body) if _changes_something(turn.existing, body) else 0
    turn.reply(request.address, ResetOffsetsResponse(rejoining=rejoining, topics=topics))


# ---- checks ----------------------------------------------------------------------------------------------------


def _invalid(turn: Turn, body: ResetOffsetsRequest) -> Refusal | None:
    if not body.group_id:
        return Refusal(Error.INVALID_GROUP_ID, "The group id is empty.")
    seen: set[tuple[str, int]] = set()
    for topic, partition in _partitions(body):
        place = topic, partition.partition_index
        if place in seen:
            return Refusal(Error.INVALID_REQUEST, f"{topic}:{partition.partition_index} is listed twice.")
        seen.add(place)
        if partition.offset < NO_OFFSET or partition.partition_index < 0:
            return Refusal(Error.INVALID_REQUEST, f"{topic}:{partition.partition_index} has no valid offset.")
        if is_metadata_too_large(partition.metadata, turn.config):
            message = f"The metadata of {topic}:{partition.partition_index} is too large."
            return Refusal(Error.OFFSET_METADATA_TOO_LARGE, message)
    return None


def _not_now(group: Group | None, body: ResetOffsetsRequest) -> Refusal | None:
    """Why a group with members cannot be reset, or not yet."""
    if group is None or group.state is State.EMPTY:
        return None
    if not body.force:
        return Refusal(Error.NON_EMPTY_GROUP, f"The group is {group.state.value}.")
    return group.part.check_reset()


def _examined(group: Group | None, body: ResetOffsetsRequest) -> list[ResetTopic]:
    """Compare the committed offsets with the expected ones, then look for offsets that should be listed."""
    topics = [
        ResetTopic(topic.name, [_compared(group, topic.name, partition) for partition in topic.partitions])
        for topic in body.topics
    ]
    if group is None or not body.lists_all:
        return topics
    listed = {(topic, partition.partition_index) for topic, partition in _partitions(body)}
    missing: dict[str, list[ResetPartition]] = {}
    for topic, index, committed in group.committed_offsets():
        if (topic, index) not in listed:
            differs = ResetPartition(index, committed.offset, Error.INVALID_UPDATE_VERSION)
            missing.setdefault(topic, []).append(differs)
    return topics + [ResetTopic(*topic) for topic in missing.items()]


def _compared(group: Group | None, topic: str, partition: PartitionToReset) -> ResetPartition:
    index = partition.partition_index
    stored = None if group is None else group.offsets.get(topic, {}).get(index)
    committed = NO_OFFSET if stored is None else stored.offset
    error = Error.NONE
    if partition.expected_offset is not None:
        if partition.expected_offset != committed:
            error = Error.INVALID_UPDATE_VERSION
        elif group is not None and group.has_pending_offset(topic, index):
            error = Error.UNSTABLE_OFFSET_COMMIT
    return ResetPartition(index, committed, error)


def _conflict(topics: list[ResetTopic]) -> Refusal | None:
    errors = {partition.error_code for topic in topics for partition in topic.partitions}
    return next((refusal for refusal in (_DIFFERS, _PENDING) if refusal.error in errors), None)


# ---- the change ------------------------------------------------------------------------------------------------


def _changes_something(group: Group | None, body: ResetOffsetsRequest) -> bool:
    """Whether an offset is set or deleted. Deleting none leaves members alone, and creates no group."""
    return any(
        partition.offset != NO_OFFSET or (group is not None and group.has_offset(topic, partition.partition_index))
        for topic, partition in _partitions(body)
    )


def _reset(turn: Turn, body: ResetOffsetsRequest) -> int:
    """Record the new offsets, then the end of the members' generation; returns the number of members.

    The record of the committed offsets is there even if it lists none: it has the reason, and it follows every
    deletion, so that a journal that ends in between can be told from a complete one.
    """
    if turn.existing is None:
        turn.create_group()
    group = turn.group
    reason = body.reason[:LONGEST_REASON]
    deleted: dict[str, list[int]] = {}
    committed = []
    for topic in body.topics:
        for partition in topic.partitions:
            index = partition.partition_index
            if partition.offset != NO_OFFSET:
                committed.append(_record(turn.now, topic, partition))
            elif group.has_offset(topic.name, index):
                deleted.setdefault(topic.name, []).append(index)
    if deleted:
        offsets = [TopicPartitions(*topic) for topic in deleted.items()]
        turn.record(OffsetsDeleted(offsets, reason or "deleted by a reset"))
    turn.record(OffsetsCommitted(committed, reason))
    because = f"offsets reset: {reason}" if reason else "offsets reset"
    members = len(group.part.member_ids)
    type_of(group).restart_members(turn, because)
    return members


def _record(now: int, topic: TopicToReset, partition: PartitionToReset) -> OffsetCommitted:
    epoch = None if partition.leader_epoch == NO_LEADER_EPOCH else partition.leader_epoch
    index, offset, metadata = partition.partition_index, partition.offset, partition.metadata
    return OffsetCommitted(topic.name, index, offset, epoch, metadata, now, None, topic.topic_id)


def _partitions(body: ResetOffsetsRequest) -> Iterator[tuple[str, PartitionToReset]]:
    for topic in body.topics:
        for partition in topic.partitions:
            yield topic.name, partition
