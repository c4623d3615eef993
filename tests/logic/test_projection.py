"""Messages to Kafka's wire types and back, for every version that is served; and through Kafka's bytes."""

import io
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from kio.index import UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.join_group.v0.response import JoinGroupResponse as JoinGroupResponseV0
from kio.schema.join_group.v1.request import JoinGroupRequest as JoinGroupRequestV1
from kio.schema.join_group.v4.response import JoinGroupResponse as JoinGroupResponseV4
from kio.schema.join_group.v7.response import JoinGroupResponse as JoinGroupResponseV7
from kio.schema.join_group.v9.request import JoinGroupRequest as JoinGroupRequestV9
from kio.schema.list_groups.v3.response import ListedGroup as WireListedGroupV3
from kio.schema.list_groups.v3.response import ListGroupsResponse as ListGroupsResponseV3
from kio.schema.offset_commit.v10.request import OffsetCommitRequest as OffsetCommitRequestV10
from kio.schema.offset_fetch.v7.request import OffsetFetchRequest as OffsetFetchRequestV7
from kio.serial import entity_reader, entity_writer

from coordinator_logic.handlers import APIS
from coordinator_logic.messages import (
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    Protocol,
    TopicToCommit,
    TopicToFetch,
)
from streaming.gateway.projection import UnprojectableType, from_wire, to_wire
from tests.logic.strategies import values_of

LIST_GROUPS_KEY = 16
EXAMPLES = 8


def pairs() -> list[Any]:
    """Every wire type of every version that is served and that kio has, with our message type."""
    served = [
        (a.name, a.key, a.min_version, a.max_version, a.request_type, a.response_type) for a in APIS.values() if a.key
    ]
    served.append(("ListGroups", LIST_GROUPS_KEY, 0, 5, ListGroupsRequest, ListGroupsResponse))
    found = []
    for name, key, first, last, request_type, response_type in served:
        for version in range(first, last + 1):
            try:
                wire_types = load_request_schema(key, version), load_response_schema(key, version)
            except UnknownEntity:
                continue
            for wire_type, message_type in zip(wire_types, (request_type, response_type), strict=True):
                found.append(pytest.param(wire_type, message_type, id=f"{message_type.__name__}-{version}"))
                assert wire_type.__name__ == message_type.__name__, name
    return found


@pytest.mark.parametrize(("wire_type", "message_type"), pairs())
def test_a_payload_survives_the_way_through_our_message(wire_type: Any, message_type: Any) -> None:
    @given(st.from_type(wire_type))
    @settings(max_examples=EXAMPLES, deadline=None)
    def survives(payload: Any) -> None:
        try:
            received = through_bytes(payload)
        except ValueError:
            reject()  # a time that kio makes up and cannot write: more days than it counts
        back = to_wire(from_wire(received, message_type), wire_type)
        expected = payload
        if hasattr(payload, "throttle_time"):
            object.__setattr__(expected, "throttle_time", timedelta(0))
        assert nulls_emptied(back) == nulls_emptied(expected)

    survives()


@pytest.mark.parametrize(("wire_type", "message_type"), pairs())
def test_a_message_keeps_what_a_version_can_carry(wire_type: Any, message_type: Any) -> None:
    @given(values_of(message_type))
    @settings(max_examples=EXAMPLES, deadline=None)
    def survives(message: Any) -> None:
        try:
            payload = to_wire(message, wire_type)
        except (OverflowError, ValueError):
            return  # more days than a timedelta can hold, or an error code that is none
        once = from_wire(payload, message_type)
        assert from_wire(to_wire(once, wire_type), message_type) == once

    survives()


def through_bytes(payload: Any) -> Any:
    """The payload after Kafka's encoding and decoding."""
    buffer = io.BytesIO()
    entity_writer(type(payload))(buffer, payload)
    return entity_reader(type(payload))(buffer.getvalue(), 0)[0]


def nulls_emptied(payload: Any) -> str:
    """What is compared: a null that our message cannot tell from an empty string counts as one."""
    return repr(payload).replace("metadata=None", "metadata=''")


def test_times_are_milliseconds_here_and_timedeltas_there() -> None:
    request = JoinGroupRequest("group", 10_000, "consumer", [Protocol("range", b"\x00")], rebalance_timeout_ms=-1)
    payload = to_wire(request, JoinGroupRequestV9)
    assert payload.session_timeout == timedelta(seconds=10)
    assert payload.rebalance_timeout == timedelta(milliseconds=-1)
    assert from_wire(payload, JoinGroupRequest) == request


def test_what_a_version_lacks_is_dropped_and_comes_back_as_the_default() -> None:
    request = JoinGroupRequest("group", 1, "consumer", [], 2, "member", "instance", "reason")
    back = from_wire(to_wire(request, JoinGroupRequestV1), JoinGroupRequest)
    assert back == JoinGroupRequest("group", 1, "consumer", [], 2, "member")


def test_no_protocol_is_an_empty_name_before_version_7_of_join_group() -> None:
    refused = JoinGroupResponse(error_code=25, protocol_name=None)
    assert to_wire(refused, JoinGroupResponseV4).protocol_name == ""
    assert to_wire(refused, JoinGroupResponseV7).protocol_name is None
    assert to_wire(refused, JoinGroupResponseV7).error_code is ErrorCode.unknown_member_id


def test_a_required_field_that_an_old_version_lacks_is_empty() -> None:
    joined = JoinGroupResponse(members=[JoinedMember("member", "instance", b"metadata")])
    back = from_wire(to_wire(joined, JoinGroupResponseV0), JoinGroupResponse)
    assert back.members == [JoinedMember("member", None, b"metadata")]
    listed = ListGroupsResponseV3(
        throttle_time=timedelta(0),  # type: ignore[arg-type]
        error_code=ErrorCode.none,
        groups=(WireListedGroupV3(group_id="group", protocol_type="consumer"),),  # type: ignore[arg-type]
    )
    (group,) = from_wire(listed, ListGroupsResponse).groups
    assert (group.group_id, group.group_state, group.group_type) == ("group", "", "")


def test_all_topics_and_no_topics_are_told_apart_where_the_version_can() -> None:
    choices: list[list[TopicToFetch] | None] = [None, []]
    for topics in choices:
        request = OffsetFetchRequest("group", topics)
        assert from_wire(to_wire(request, OffsetFetchRequestV7), OffsetFetchRequest) == request


def test_a_version_with_fields_that_have_no_place_here_is_refused() -> None:
    commit = OffsetCommitRequest("group", [TopicToCommit("topic", [PartitionToCommit(0, 1)])])
    with pytest.raises(UnprojectableType, match="topic_id"):
        to_wire(commit, OffsetCommitRequestV10)


def test_an_error_code_that_kafka_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="9999"):
        to_wire(JoinGroupResponse(error_code=9_999), JoinGroupResponseV7)
