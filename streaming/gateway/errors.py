"""What a client is told when the coordinator does not answer, and how an error looks in each API.

The coordinator is a job that is restarted now and then, for seconds. Meanwhile every client has to wait, to ask again
and to keep its membership, and none may be told what nobody knows. Which error does that differs from API to API,
because clients accept different ones; the table below was made from the sources of the Java client, librdkafka,
kafka-python and aiokafka.

A request that was appended is carried out when the job is back, whatever its client was told. So what a client is told
to repeat must bear to be done twice, in the order of the log: a join of the same member takes the place of the first, a
commit is followed by a newer one, a leave finds the member gone.
"""

from typing import Any, NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.handlers import Api
from coordinator_logic.messages import (
    FetchedPartition,
    FetchedTopic,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    RequestBody,
    ResponseBody,
    TxnOffsetCommitRequest,
)
from streaming.client.errors import CoordinatorError, RequestTooLarge

__all__ = ["LOADING", "Patience", "outage_error", "patience", "refusal"]


class Patience(NamedTuple):
    """How an API bears an outage.

    ``seconds``: how long the answer is waited for. ``unanswered``: the error when none came for a request that is in
    the log. ``unsent``: the error when it is not in the log, and the client has to bring it again.
    """

    seconds: float
    unanswered: Error
    unsent: Error


BESIDE_HEARTBEATS_SECONDS = 5.0
"""Kafka's own default for a commit (``offsets.commit.timeout.ms``). Answers leave a connection in order: what is waited
for longer holds back the heartbeats behind it, and the shortest session that Kafka allows by default is 6 s."""

PATIENT_SECONDS = 25.0
"""Less than the 30 s after which clients close the connection by themselves (``request.timeout.ms``)."""

BEFORE_CLOSE_SECONDS = 4.0
"""librdkafka waits 5 s for the answer to LeaveGroup, and ``close()`` of every client waits for it."""

JOIN_MARGIN_MS = 5_000
"""How much longer than its rebalance timeout a client waits for the answer to JoinGroup (the Java client; librdkafka
3 s)."""

LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS
"""Ask again, here. Of ListGroups, too, while the directory was not read to its end."""

_PATIENCE = {
    # Blindly well, as a broker answers while it loads a group. librdkafka gives up its member id when no heartbeat
    # succeeds for a session, so an error would cost the membership; and it is no lie: a heartbeat in the log counts
    # when the job is back. One that is not in the log does not: all clients look the coordinator up and go on.
    "Heartbeat": Patience(BESIDE_HEARTBEATS_SECONDS, Error.NONE, Error.COORDINATOR_NOT_AVAILABLE),
    # All clients pause and join again with the id that they have. A join is waited for as long as the client waits
    # (see `patience`): each that comes again without an id leaves one behind that nobody uses.
    "JoinGroup": Patience(PATIENT_SECONDS, LOADING, LOADING),
    # The Java client takes COORDINATOR_LOAD_IN_PROGRESS for fatal here. A broker that loads the group answers
    # REBALANCE_IN_PROGRESS: join again, with the same id and without another search for the coordinator.
    "SyncGroup": Patience(PATIENT_SECONDS, Error.REBALANCE_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE),
    # Every client that leaves goes on to close, whatever the answer; Java's admin client asks again.
    "LeaveGroup": Patience(BEFORE_CLOSE_SECONDS, LOADING, LOADING),
    # All clients repeat the commit at the same coordinator.
    "OffsetCommit": Patience(BESIDE_HEARTBEATS_SECONDS, LOADING, LOADING),
    # The one retriable error that all clients know here: to kafka-python and aiokafka COORDINATOR_NOT_AVAILABLE is
    # unexpected and ends the consumer.
    "OffsetFetch": Patience(BESIDE_HEARTBEATS_SECONDS, LOADING, LOADING),
    # What follows comes over connections without heartbeats. Admin clients and producers ask again.
    "DescribeGroups": Patience(PATIENT_SECONDS, LOADING, LOADING),
    "DeleteGroups": Patience(PATIENT_SECONDS, LOADING, LOADING),
    "OffsetDelete": Patience(PATIENT_SECONDS, LOADING, LOADING),
    "TxnOffsetCommit": Patience(PATIENT_SECONDS, LOADING, LOADING),
}

FIRST_TXN_VERSION_WITH_LOADING = 2
"""Producers before 2.0 crash when TxnOffsetCommit says COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

OFFSET_FETCH_ERROR_AT_TOP = range(2, 8)


def patience(api: str, body: RequestBody) -> Patience:
    """How long the answer to a request is waited for, and what the client is told then."""
    granted = _PATIENCE[api]
    if isinstance(body, JoinGroupRequest):
        rebalance_ms = max(body.rebalance_timeout_ms, body.session_timeout_ms)
        return granted._replace(seconds=max(granted.seconds, (rebalance_ms + JOIN_MARGIN_MS) / 1000))
    return granted


def outage_error(granted: Patience, failure: CoordinatorError, *, appended: bool) -> Error:
    """What the client is told when its request failed that way. A request that is too large always will be."""
    if isinstance(failure, RequestTooLarge):
        return failure.error
    return granted.unanswered if appended else granted.unsent


def refusal(api: Api[Any], body: RequestBody, version: int, error: Error) -> ResponseBody:
    """The answer that carries one error for the whole request, in the shape that the API has for it.

    OffsetFetch v2-7 repeats the error on every partition, which a broker does not: aiokafka looks there only, and would
    take an answer without partitions for "nothing is committed".
    """
    if isinstance(body, JoinGroupRequest):
        return JoinGroupResponse(error_code=error)
    if isinstance(body, TxnOffsetCommitRequest) and version < FIRST_TXN_VERSION_WITH_LOADING and error is LOADING:
        error = Error.COORDINATOR_NOT_AVAILABLE
    if isinstance(body, OffsetFetchRequest) and version in OFFSET_FETCH_ERROR_AT_TOP:
        return OffsetFetchResponse(error_code=error, topics=_all_failed(body, error))
    return api.refuse(body, version, error)


def _all_failed(body: OffsetFetchRequest, error: Error) -> list[FetchedTopic]:
    return [
        FetchedTopic(topic.name, [FetchedPartition(index, error_code=error) for index in topic.partition_indexes])
        for topic in body.topics or []
    ]
