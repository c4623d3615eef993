"""Error responses of the transaction APIs, made from the request's version."""

from datetime import timedelta
from typing import Any

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16
from kio.static.protocol import Entity

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from streaming.gateway.groups.error_responses import txn_offset_commit_error
from streaming.gateway.wire.client_request import ClientRequest

__all__ = ["end_txn_error", "init_producer_id_error", "txn_offset_commit_errors"]

NO_EPOCH = i16(-1)
NOT_THROTTLED = timedelta(0)


def init_producer_id_error(request: Any, error: ErrorCode) -> Entity:
    """A response to InitProducerId without a producer id."""
    response: Any = load_response_schema(request.__api_key__, request.__version__)
    return response(throttle_time=NOT_THROTTLED, error_code=error, producer_epoch=NO_EPOCH)  # type: ignore[no-any-return]


def end_txn_error(request: Any, error: ErrorCode) -> Entity:
    """A response to EndTxn."""
    response: Any = load_response_schema(request.__api_key__, request.__version__)
    return response(throttle_time=NOT_THROTTLED, error_code=error)  # type: ignore[no-any-return]


def txn_offset_commit_errors(request: ClientRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """A response to TxnOffsetCommit with one error for all partitions."""
    code: int = error
    if error is ErrorCode.coordinator_load_in_progress:
        code = txn_offset_commit_error(request.version, Error.COORDINATOR_LOAD_IN_PROGRESS)
    body: TxnOffsetCommitRequest = request.payload
    return TxnOffsetCommitResponse(
        [
            CommittedTopic(topic.name, [CommittedPartition(each.partition_index, code) for each in topic.partitions])
            for topic in body.topics
        ]
    )
