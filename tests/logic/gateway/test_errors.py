"""What the table of patience promises, and how one error looks in each API."""

from typing import Any

import pytest
from kio.index import load_response_schema

from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import (
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    Protocol,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from streaming.client.errors import CoordinatorNotAvailable, RequestTooLarge, Unanswered
from streaming.gateway.errors import LOADING, outage_error, patience, refusal
from streaming.gateway.projection import to_wire


def join(rebalance_timeout_ms: int, session_timeout_ms: int = 10_000) -> JoinGroupRequest:
    return JoinGroupRequest("g", session_timeout_ms, "consumer", [Protocol("range", b"")], rebalance_timeout_ms)


@pytest.mark.parametrize(
    ("request_body", "seconds"),
    [(join(300_000), 305.0), (join(1_000), 25.0), (join(-1, 120_000), 125.0)],
)
def test_a_join_is_waited_for_as_long_as_its_client_waits(request_body: JoinGroupRequest, seconds: float) -> None:
    assert patience("JoinGroup", request_body).seconds == seconds


def test_a_heartbeat_is_well_only_when_it_is_in_the_log() -> None:
    granted = patience("Heartbeat", HeartbeatRequest("g", 1, "m"))
    assert outage_error(granted, Unanswered("late"), appended=True) is Error.NONE
    assert outage_error(granted, CoordinatorNotAvailable("no broker"), appended=False) is not Error.NONE


def test_what_is_too_large_need_not_be_tried_again() -> None:
    granted = patience("JoinGroup", join(1_000))
    error = outage_error(granted, RequestTooLarge("2 MB"), appended=False)
    assert not error.retriable


@pytest.mark.parametrize("version", range(1, 10))
def test_a_failed_fetch_has_its_error_where_every_client_looks(version: int) -> None:
    topics = [TopicToFetch("t", [0, 1])]
    body = OffsetFetchRequest("g", topics, [GroupToFetch("g", topics)])
    answer: Any = to_wire(refusal(APIS["OffsetFetch"], body, version, LOADING), load_response_schema(9, version))
    if version >= 8:
        assert [group.error_code for group in answer.groups] == [LOADING]
        return
    assert version == 1 or answer.error_code == LOADING
    assert [(p.error_code, p.committed_offset) for t in answer.topics for p in t.partitions] == [(LOADING, -1)] * 2


def test_a_failed_fetch_of_everything_has_its_error_at_the_top() -> None:
    answer = refusal(APIS["OffsetFetch"], OffsetFetchRequest("g", None), 7, LOADING)
    assert answer == OffsetFetchResponse(error_code=LOADING)


@pytest.mark.parametrize("version", range(5))
def test_old_producers_are_not_told_that_the_group_is_loading(version: int) -> None:
    body = TxnOffsetCommitRequest("t", "g", 1, 0, [TxnTopicToCommit("a", [TxnPartitionToCommit(0, 1)])])
    answer: Any = refusal(APIS["TxnOffsetCommit"], body, version, LOADING)
    expected = Error.COORDINATOR_NOT_AVAILABLE if version < 2 else LOADING
    assert answer.topics[0].partitions[0].error_code == expected


def test_a_refused_join_names_no_member() -> None:
    answer = refusal(APIS["JoinGroup"], join(1_000), 9, Error.GROUP_AUTHORIZATION_FAILED)
    assert answer == JoinGroupResponse(error_code=Error.GROUP_AUTHORIZATION_FAILED)
