"""TxnOffsetCommit: store offsets that take effect when a producer's transaction commits (KIP-98).

The offsets are pending until WriteTxnMarkers ends the transaction. Unlike OffsetCommit, the request does not restart
the member's session.
"""

from coordinator_logic.apis import TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_MEMBER
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.part import Commit
from coordinator_logic.messages import NO_GENERATION, TxnOffsetCommitRequest, TxnOffsetCommitResponse
from coordinator_logic.offsets.committing import (
    accept_partitions,
    error_on_every_partition,
    has_no_partitions,
    offset_record,
)
from coordinator_logic.records import TransactionalOffsetsCommitted
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: TxnOffsetCommitRequest) -> None:
    """Store the offsets as pending; an error of the group is reported on every partition."""
    if has_no_partitions(body.topics):
        turn.reply(request.address, TxnOffsetCommitResponse())
        return
    version = request.address.version
    error = _check(turn.existing, body, version)
    if error is not Error.NONE:
        turn.reply(request.address, refuse(body, version, error), error)
        return
    if turn.existing is None:
        turn.create_group()
    topics, accepted = accept_partitions(
        turn.config,
        body.topics,
        lambda topic, partition: offset_record(topic, partition, commit_timestamp=turn.now, expire_timestamp=None),
    )
    if accepted:
        record = TransactionalOffsetsCommitted(body.transactional_id, body.producer_id, body.producer_epoch, accepted)
        turn.record(record)
    turn.reply(request.address, TxnOffsetCommitResponse(topics))


def _check(group: Group | None, body: TxnOffsetCommitRequest, version: int) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    generation, member_id, instance_id = NO_GENERATION, "", None
    if version >= TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_MEMBER:
        generation, member_id, instance_id = body.generation_id, body.member_id, body.group_instance_id
    open_transaction = None if group is None else group.open_transactions.get(body.producer_id)
    if open_transaction is not None and body.producer_epoch < open_transaction.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    if generation < 0 and not member_id and instance_id is None:
        # Producers older than KIP-447 name no member: the transactional id fences them instead.
        return Error.NONE
    if group is None:
        return Error.NONE if generation < 0 else Error.ILLEGAL_GENERATION
    error = group.part.check_commit(Commit(member_id, instance_id, generation, body.topics, version=None))
    return Error.ILLEGAL_GENERATION if error is Error.STALE_MEMBER_EPOCH else error


def refuse(body: TxnOffsetCommitRequest, version: int, error: Error) -> TxnOffsetCommitResponse:
    """Report one error for the whole request, on every partition."""
    return TxnOffsetCommitResponse(error_on_every_partition(body.topics, error))
