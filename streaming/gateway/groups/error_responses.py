"""Error responses of the group APIs: which error a failed request gets, and where each API carries it."""

from collections.abc import Sequence
from typing import TypeVar, cast

from coordinator_logic.apis import (
    OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS,
    OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR,
    TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_LOADING,
    Api,
)
from coordinator_logic.errors import Error
from coordinator_logic.handlers import refusal
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    FetchedPartition,
    FetchedTopic,
    JoinGroupRequest,
    JoinGroupResponse,
    Message,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.client.errors import CoordinatorError, RequestTooLarge
from streaming.gateway.groups.list_requests import made_lazily
from streaming.gateway.groups.timeout_policies import TimeoutPolicy

OFFSET_FETCH_VERSIONS_WITH_TOP_LEVEL_ERROR = range(
    OFFSET_FETCH_FIRST_VERSION_WITH_TOP_LEVEL_ERROR, OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS
)

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


def outage_error(policy: TimeoutPolicy, failure: CoordinatorError, *, appended: bool) -> Error:
    """The error for a request without a response.

    A request that is too large keeps its own error, which is not retriable: it would be too large every time.
    """
    if isinstance(failure, RequestTooLarge):
        return failure.error
    return policy.unanswered if appended else policy.unsent


def error_response(api: Api[RequestT, ResponseT], body: RequestT, version: int, error: Error) -> ResponseT:
    """The response of an API that carries one error for the whole request.

    OffsetFetch v2-7 repeats the error on every partition, which a broker does not. aiokafka reads only the partitions'
    errors, and would take a response without partitions for "no offset is committed".
    """
    response: Message
    match body:
        case JoinGroupRequest():
            response = JoinGroupResponse(error_code=error)
        case OffsetFetchRequest() if version in OFFSET_FETCH_VERSIONS_WITH_TOP_LEVEL_ERROR:
            topics = [failed_fetch(topic, error) for topic in body.topics or ()]
            response = OffsetFetchResponse(error_code=error, topics=topics)
        case TxnOffsetCommitRequest():
            response = refusal(api.name, body, version, txn_offset_commit_error(version, error))
        case _:
            response = refusal(api.name, body, version, error)
    return cast("ResponseT", response)


def txn_offset_commit_error(version: int, error: Error) -> Error:
    """The error as a client of that version of TxnOffsetCommit may receive it.

    Producers before 2.0 crash on COORDINATOR_LOAD_IN_PROGRESS and retry on COORDINATOR_NOT_AVAILABLE (KAFKA-7296).
    """
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS and version < TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_LOADING:
        return Error.COORDINATOR_NOT_AVAILABLE
    return error


def failed_fetch(topic: TopicToFetch, error: Error) -> FetchedTopic:
    """The result of a topic with one error for all partitions, of which there may be many."""

    def partition(index: int) -> FetchedPartition:
        return FetchedPartition(index, error_code=error)

    return FetchedTopic(topic.name, made_lazily(topic.partition_indexes, partition), topic.topic_id)


def failed_commit(topic: TopicToCommit | TxnTopicToCommit, error: int) -> CommittedTopic:
    """The result of a topic with one error for all partitions, of which there may be many."""
    partitions: Sequence[PartitionToCommit | TxnPartitionToCommit] = topic.partitions

    def partition(named: PartitionToCommit | TxnPartitionToCommit) -> CommittedPartition:
        return CommittedPartition(named.partition_index, error)

    return CommittedTopic(topic.name, made_lazily(partitions, partition), topic.topic_id)
