"""OffsetCommit (API key 8): store positions, as a member of the current generation or while there are no members.

v1 only: ``commit_timestamp`` per partition. v2-4: ``retention_time_ms``. v6+: leader epoch (KIP-320). v7+:
``group_instance_id`` (KIP-345). v9+: an absent group is GROUP_ID_NOT_FOUND, not ILLEGAL_GENERATION.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.handlers.api import Api
from coordinator_logic.handlers.committing import leaves_nothing, refused, stored, take
from coordinator_logic.handlers.validation import check_generation
from coordinator_logic.messages import (
    NO_TIMESTAMP,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
)
from coordinator_logic.records import OffsetCommitted, OffsetsCommitted
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

VERSIONS_WITH_RETENTION_TIME = range(2, 5)
VERSION_WITH_COMMIT_TIMESTAMP = 1
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


def handle(turn: Turn, request: Request, body: OffsetCommitRequest) -> None:
    """Store what can be stored; an error of the group stands on every partition.

    Offsets are not checked against anything: going back is how a group is reset.
    """
    version = request.address.version
    if leaves_nothing(body.topics):
        turn.reply(request.address, OffsetCommitResponse())
        return
    error = _check(turn.existing, body, version)
    if error is not Error.NONE:
        turn.reply(request.address, refuse(body, version, error), error)
        return
    if turn.existing is None:
        turn.create_group()
    group = turn.group
    if group.state in (State.STABLE, State.PREPARING_REBALANCE):
        turn.arm_session(group.members[body.member_id])
    topics, accepted = take(
        turn.config,
        [(topic.name, topic.partitions) for topic in body.topics],
        lambda topic, partition: _committed(turn.now, topic, partition, body, version),
    )
    if accepted:
        turn.record(OffsetsCommitted(accepted))
    turn.reply(request.address, OffsetCommitResponse(topics))


def _check(group: Group | None, body: OffsetCommitRequest, version: int) -> Error:
    generation = body.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return Error.NONE
        by_name = version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
        return Error.GROUP_ID_NOT_FOUND if by_name else Error.ILLEGAL_GENERATION
    if generation < 0 and group.state is State.EMPTY:
        return Error.NONE
    if generation < 0 and not body.member_id and body.group_instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    error = check_generation(group, body.member_id, body.group_instance_id, generation)
    if error is not Error.NONE:
        return error
    completing = group.state is State.COMPLETING_REBALANCE
    return Error.REBALANCE_IN_PROGRESS if completing else Error.NONE


def _committed(
    now: int, topic: str, partition: PartitionToCommit, body: OffsetCommitRequest, version: int
) -> OffsetCommitted:
    given = partition.commit_timestamp
    has_timestamp = version == VERSION_WITH_COMMIT_TIMESTAMP and given != NO_TIMESTAMP
    has_retention = version in VERSIONS_WITH_RETENTION_TIME and body.retention_time_ms != -1
    return stored(
        topic,
        partition,
        commit_timestamp=given if has_timestamp else now,
        expire_timestamp=now + body.retention_time_ms if has_retention else None,
    )


def refuse(body: OffsetCommitRequest, version: int, error: Error) -> OffsetCommitResponse:
    """One error for the whole request: on every partition."""
    return OffsetCommitResponse(refused(body.topics, error))


API = Api("OffsetCommit", 8, 0, 9, OffsetCommitRequest, OffsetCommitResponse, handle, refuse)
