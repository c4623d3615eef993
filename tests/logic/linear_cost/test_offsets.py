"""Requests about offsets, in a group with many offsets, topics or open transactions."""

from collections.abc import Callable, Iterable

import pytest

from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.events import Request
from coordinator_logic.messages import (
    GroupToFetch,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    PartitionToReset,
    ResetOffsetsRequest,
    SyncGroupRequest,
    TopicsDeletedRequest,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TopicToReset,
    TxnMarker,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
)
from coordinator_logic.step import StepResult
from tests.logic.driver import DELAY_MS, listing
from tests.logic.linear_cost.batches import (
    GROUP_ID,
    NOW,
    SESSION_MS,
    Scenario,
    batch,
    grows_linearly,
    request,
    stored,
)

TOPIC = "topic"


def commit(partitions: Iterable[int]) -> Request:
    topic = TopicToCommit(TOPIC, [PartitionToCommit(partition, 1) for partition in partitions])
    return request("OffsetCommit", 8, OffsetCommitRequest(GROUP_ID, [topic]))


def commit_in_transaction(producer_id: int, partition: int) -> Request:
    topic = TxnTopicToCommit(TOPIC, [TxnPartitionToCommit(partition, 1)])
    return request("TxnOffsetCommit", 2, TxnOffsetCommitRequest("transaction", GROUP_ID, producer_id, 0, [topic]))


def end_transaction(producer_id: int) -> Request:
    return request("WriteTxnMarkers", 1, WriteTxnMarkersRequest([TxnMarker(producer_id, 0, True)]))


def delete(partition: int) -> Request:
    topic = TopicToDelete(TOPIC, [PartitionToDelete(partition)])
    return request("OffsetDelete", 0, OffsetDeleteRequest(GROUP_ID, [topic]))


def fetch(partitions: Iterable[int]) -> Request:
    wanted = GroupToFetch(GROUP_ID, [TopicToFetch(TOPIC, list(partitions))])
    return request("OffsetFetch", 8, OffsetFetchRequest(groups=[wanted], require_stable=True))


def commits_of_one_offset(size: int) -> Callable[[], StepResult]:
    requests = [commit([partition]) for partition in range(size)]
    return lambda: batch(None, requests)


def commits_of_a_group_that_subscribes_to_many_topics(size: int) -> Callable[[], StepResult]:
    names = [f"topic-{number}" for number in range(size)]
    protocols = listing("range", metadata=encode_subscription(Subscription(names)))
    join = request("JoinGroup", 3, JoinGroupRequest(GROUP_ID, SESSION_MS, "consumer", protocols, DELAY_MS))
    joined = batch(None, [join], NOW + DELAY_MS)
    answer = joined.responses[0].body
    assert isinstance(answer, JoinGroupResponse)
    member_id, generation = answer.member_id, answer.generation_id
    sync = request("SyncGroup", 3, SyncGroupRequest(GROUP_ID, generation, member_id))
    stable = stored(batch(stored(joined), [sync]))
    topics = [TopicToCommit(name, [PartitionToCommit(0, 1)]) for name in names]
    body = OffsetCommitRequest(GROUP_ID, topics, generation, member_id)
    return lambda: batch(stable, [request("OffsetCommit", 8, body)])


def deletions_of_one_offset(size: int) -> Callable[[], StepResult]:
    offsets = stored(batch(None, [commit(range(size + 1))]))
    requests = [delete(partition) for partition in range(size)]
    return lambda: batch(offsets, requests)


def transactions_of_one_offset(size: int) -> Callable[[], StepResult]:
    offsets = stored(batch(None, [commit(range(size))]))
    requests = [
        step
        for producer_id in range(size)
        for step in (commit_in_transaction(producer_id, producer_id), end_transaction(producer_id))
    ]
    return lambda: batch(offsets, requests)


def open_transactions(size: int) -> bytes:
    return stored(batch(None, [commit_in_transaction(producer_id, producer_id) for producer_id in range(size)]))


def stable_fetch_beside_open_transactions(size: int) -> Callable[[], StepResult]:
    pending = open_transactions(size)
    return lambda: batch(pending, [fetch(range(size))])


def deletions_beside_open_transactions(size: int) -> Callable[[], StepResult]:
    pending = open_transactions(size)
    requests = [delete(partition) for partition in range(size)]
    return lambda: batch(pending, requests)


def deletion_of_topics_beside_open_transactions(size: int) -> Callable[[], StepResult]:
    pending = open_transactions(size)
    deleted = TopicsDeletedRequest([f"topic-{number}" for number in range(size)])
    return lambda: batch(pending, [request("TopicsDeleted", 0, deleted)])


def resets_of_all_offsets_beside_open_transactions(size: int) -> Callable[[], StepResult]:
    pending = open_transactions(size)
    partitions = [PartitionToReset(partition, partition % 2 - 1) for partition in range(size)]
    body = ResetOffsetsRequest(GROUP_ID, [TopicToReset(TOPIC, partitions)], lists_all=True)
    return lambda: batch(pending, [request("ResetOffsets", 0, body)])


@pytest.mark.parametrize(
    "scenario",
    [
        resets_of_all_offsets_beside_open_transactions,
        commits_of_one_offset,
        commits_of_a_group_that_subscribes_to_many_topics,
        deletions_of_one_offset,
        transactions_of_one_offset,
        stable_fetch_beside_open_transactions,
        deletions_beside_open_transactions,
        deletion_of_topics_beside_open_transactions,
    ],
)
def test_four_times_as_many_cost_about_four_times_as_much(scenario: Scenario) -> None:
    grows_linearly(scenario)
