"""TxnOffsetCommit (API key 28): positions that count when a producer's transaction is committed (KIP-98).

v3+ (KIP-447): the request may say as which member it commits, and is checked then. v5 (KIP-890) differs only in what
the broker does with the transaction itself. The positions are pending until WriteTxnMarkers tells how the
transaction ended; committing extends no session.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.handlers.api import Api
from coordinator_logic.handlers.committing import leaves_nothing, refused, stored, take
from coordinator_logic.handlers.validation import check_generation
from coordinator_logic.messages import (
    NO_GENERATION,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordinator_logic.records import TransactionalOffsetsCommitted
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

FIRST_VERSION_WITH_MEMBER = 3


def handle(turn: Turn, request: Request, body: TxnOffsetCommitRequest) -> None:
    """Keep what can be kept as pending; an error of the group stands on every partition."""
    if leaves_nothing(body.topics):
        turn.reply(request.address, TxnOffsetCommitResponse())
        return
    version = request.address.version
    error = _check(turn.existing, body, version)
    if error is not Error.NONE:
        turn.reply(request.address, refuse(body, version, error), error)
        return
    if turn.existing is None:
        turn.create_group()
    topics, accepted = take(
        turn.config,
        [(topic.name, topic.partitions) for topic in body.topics],
        lambda topic, partition: stored(topic, partition, commit_timestamp=turn.now, expire_timestamp=None),
    )
    if accepted:
        record = TransactionalOffsetsCommitted(body.transactional_id, body.producer_id, body.producer_epoch, accepted)
        turn.record(record)
    turn.reply(request.address, TxnOffsetCommitResponse(topics))


def _check(group: Group | None, body: TxnOffsetCommitRequest, version: int) -> Error:
    if not body.group_id:
        return Error.INVALID_GROUP_ID
    generation, member_id, instance_id = NO_GENERATION, "", None
    if version >= FIRST_VERSION_WITH_MEMBER:
        generation, member_id, instance_id = body.generation_id, body.member_id, body.group_instance_id
    if group is None:
        return Error.NONE if generation < 0 else Error.ILLEGAL_GENERATION
    open_transaction = group.open_transactions.get(body.producer_id)
    if open_transaction is not None and body.producer_epoch < open_transaction.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    is_anonymous = generation < 0 and not member_id and instance_id is None
    if is_anonymous or (generation < 0 and group.state is State.EMPTY):
        return Error.NONE
    return check_generation(group, member_id, instance_id, generation)


def refuse(body: TxnOffsetCommitRequest, version: int, error: Error) -> TxnOffsetCommitResponse:
    """One error for the whole request: on every partition."""
    return TxnOffsetCommitResponse(refused(body.topics, error))


API = Api("TxnOffsetCommit", 28, 0, 5, TxnOffsetCommitRequest, TxnOffsetCommitResponse, handle, refuse)
