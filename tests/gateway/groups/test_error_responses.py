"""Where each API carries an error for the whole request."""

from typing import Any

import pytest
from kio.index import load_response_schema

from coordinator_logic.apis import JOIN_GROUP, OFFSET_FETCH, TXN_OFFSET_COMMIT
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    GroupToFetch,
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
from streaming.gateway.groups.error_responses import error_response
from tests.support.wire_types import to_wire

LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("version", range(1, 10))
def test_a_failed_fetch_carries_its_error_wherever_a_client_reads_it(version: int) -> None:
    topics = [TopicToFetch("t", [0, 1])]
    body = OffsetFetchRequest("g", topics, [GroupToFetch("g", topics)])
    response: Any = to_wire(error_response(OFFSET_FETCH, body, version, LOADING), load_response_schema(9, version))
    if version >= 8:
        assert [group.error_code for group in response.groups] == [LOADING]
        return
    assert version == 1 or response.error_code == LOADING
    assert [(p.error_code, p.committed_offset) for t in response.topics for p in t.partitions] == [(LOADING, -1)] * 2


def test_a_failed_fetch_of_all_topics_carries_its_error_at_the_top_level() -> None:
    response = error_response(OFFSET_FETCH, OffsetFetchRequest("g", None), 7, LOADING)
    assert response == OffsetFetchResponse(error_code=LOADING)


@pytest.mark.parametrize("version", range(5))
def test_producers_before_2_0_get_coordinator_not_available_instead_of_load_in_progress(version: int) -> None:
    body = TxnOffsetCommitRequest("t", "g", 1, 0, [TxnTopicToCommit("a", [TxnPartitionToCommit(0, 1)])])
    response: Any = error_response(TXN_OFFSET_COMMIT, body, version, LOADING)
    expected = Error.COORDINATOR_NOT_AVAILABLE if version < 2 else LOADING
    assert response.topics[0].partitions[0].error_code == expected


def test_an_unauthorized_join_gets_no_member_id() -> None:
    join = JoinGroupRequest("g", 10_000, "consumer", [Protocol("range", b"")], 1_000, member_id="m")
    response = error_response(JOIN_GROUP, join, 9, Error.GROUP_AUTHORIZATION_FAILED)
    assert response == JoinGroupResponse(error_code=Error.GROUP_AUTHORIZATION_FAILED)
