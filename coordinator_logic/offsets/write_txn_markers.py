"""WriteTxnMarkers: end a producer's transaction, by commit or by abort (KIP-98).

A broker's transaction coordinator sends this request for every partition of a transaction. Here it is an event for
every group with offsets in the transaction; the topics in it are only repeated in the response.
"""

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.messages import (
    TxnMarker,
    TxnMarkerPartitionResult,
    TxnMarkerResult,
    TxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_logic.records import TransactionEnded
from coordinator_logic.turn import Turn


def handle(turn: Turn, request: Request, body: WriteTxnMarkersRequest) -> None:
    """End the transactions; a transaction that is not open in this group is no error."""
    errors = [_end(turn, marker) for marker in body.markers]
    results = [_result(marker, error) for marker, error in zip(body.markers, errors, strict=True)]
    first = next((error for error in errors if error is not Error.NONE), Error.NONE)
    turn.reply(request.address, WriteTxnMarkersResponse(results), first)


def _end(turn: Turn, marker: TxnMarker) -> Error:
    group = turn.existing
    transaction = None if group is None else group.open_transactions.get(marker.producer_id)
    if transaction is None:
        return Error.NONE
    if marker.producer_epoch < transaction.producer_epoch:
        return Error.INVALID_PRODUCER_EPOCH
    turn.record(TransactionEnded(marker.producer_id, marker.producer_epoch, marker.transaction_result))
    return Error.NONE


def _result(marker: TxnMarker, error: Error) -> TxnMarkerResult:
    return TxnMarkerResult(
        marker.producer_id,
        [
            TxnMarkerTopicResult(
                topic.name, [TxnMarkerPartitionResult(index, error) for index in topic.partition_indexes]
            )
            for topic in marker.topics
        ],
    )


def refuse(body: WriteTxnMarkersRequest, version: int, error: Error) -> WriteTxnMarkersResponse:
    """Report one error for the whole request, on every partition of every marker."""
    return WriteTxnMarkersResponse([_result(marker, error) for marker in body.markers])
