"""OffsetCommit: store offsets, for a member of the current generation or while the group has no members."""

from coordinator_logic.apis import (
    OFFSET_COMMIT_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND,
    OFFSET_COMMIT_VERSION_WITH_COMMIT_TIMESTAMP,
    OFFSET_COMMIT_VERSIONS_WITH_RETENTION_TIME,
)
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.part import Commit
from coordinator_logic.groups.group_type import type_of
from coordinator_logic.messages import (
    NO_TIMESTAMP,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)
from coordinator_logic.offsets.committing import (
    accept_partitions,
    error_on_every_partition,
    has_no_partitions,
    offset_record,
)
from coordinator_logic.offsets.expiry import LATEST_EXPIRY_MS
from coordinator_logic.records import OffsetCommitted, OffsetsCommitted
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: OffsetCommitRequest) -> None:
    """Store the offsets; an error of the group is reported on every partition.

    The offsets themselves are not checked: a commit of an earlier offset resets the group.
    """
    version = request.address.version
    if has_no_partitions(body.topics):
        turn.reply(request.address, OffsetCommitResponse())
        return
    error = _check(turn.existing, body, version)
    if error is not Error.NONE:
        turn.reply(request.address, refuse(body, version, error), error)
        return
    if turn.existing is None:
        turn.create_group()
    group = turn.group
    type_of(group).note_commit(turn, body.member_id)
    topics, accepted = accept_partitions(
        turn.config,
        body.topics,
        lambda topic, partition: _committed(turn.now, topic, partition, body, version),
    )
    if accepted:
        turn.record(OffsetsCommitted(accepted))
    turn.reply(request.address, OffsetCommitResponse(topics))


def _check(group: Group | None, body: OffsetCommitRequest, version: int) -> Error:
    epoch = body.generation_id_or_member_epoch
    if group is not None:
        return group.part.check_commit(Commit(body.member_id, body.group_instance_id, epoch, body.topics, version))
    if epoch < 0:
        return Error.NONE
    not_found = version >= OFFSET_COMMIT_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
    return Error.GROUP_ID_NOT_FOUND if not_found else Error.ILLEGAL_GENERATION


def _committed(
    now: int, topic: TopicToCommit, partition: PartitionToCommit, body: OffsetCommitRequest, version: int
) -> OffsetCommitted:
    given = partition.commit_timestamp
    has_timestamp = version == OFFSET_COMMIT_VERSION_WITH_COMMIT_TIMESTAMP and given != NO_TIMESTAMP
    has_retention = version in OFFSET_COMMIT_VERSIONS_WITH_RETENTION_TIME and body.retention_time_ms != -1
    return offset_record(
        topic,
        partition,
        commit_timestamp=given if has_timestamp else now,
        expire_timestamp=min(now + body.retention_time_ms, LATEST_EXPIRY_MS) if has_retention else None,
    )


def refuse(body: OffsetCommitRequest, version: int, error: Error) -> OffsetCommitResponse:
    """Report one error for the whole request, on every partition."""
    return OffsetCommitResponse(error_on_every_partition(body.topics, error))
