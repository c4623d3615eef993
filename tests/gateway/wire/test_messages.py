"""Messages are read from the bytes that kio writes, and kio reads what is written of them, in every served version."""

import struct
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, reject
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

from coordinator_logic.apis import APIS, LIST_GROUPS
from coordinator_logic.messages import (
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    Protocol,
    TopicToCommit,
    TopicToFetch,
)
from streaming.gateway.wire.layout import LayoutMismatch
from streaming.gateway.wire.values import text_of_topic_id
from tests.logic.strategies import values_of
from tests.support.properties import examples
from tests.support.wire_types import from_wire, to_wire, written, written_by_kio

EXAMPLES = 8


def pairs() -> list[Any]:
    """Each wire type that kio has of a served version, with its message type."""
    found = []
    for api in (*APIS.values(), LIST_GROUPS):
        if api.key is None:
            continue
        for version in api.versions:
            try:
                wire_types = load_request_schema(api.key, version), load_response_schema(api.key, version)
            except UnknownEntity:
                continue
            for wire_type, message_type in zip(wire_types, (api.request_type, api.response_type), strict=True):
                found.append(pytest.param(wire_type, message_type, id=f"{message_type.__name__}-{version}"))
                assert wire_type.__name__ == message_type.__name__, api.name
    return found


@pytest.mark.parametrize(("wire_type", "message_type"), pairs())
@given(data=st.data())
@examples(EXAMPLES)
def test_a_payload_survives_conversion_to_a_message_and_back(
    wire_type: Any, message_type: Any, data: st.DataObject
) -> None:
    payload = data.draw(st.from_type(wire_type))
    try:
        back = to_wire(from_wire(payload, message_type), wire_type)
    except ValueError:
        reject()  # hypothesis drew a time that kio cannot write or read
    expected = payload
    if hasattr(payload, "throttle_time"):
        object.__setattr__(expected, "throttle_time", timedelta(0))
    assert nulls_emptied(back) == nulls_emptied(expected)


@pytest.mark.parametrize(("wire_type", "message_type"), pairs())
@given(data=st.data())
@examples(EXAMPLES)
def test_a_message_keeps_the_fields_that_a_version_has(wire_type: Any, message_type: Any, data: st.DataObject) -> None:
    try:
        payload = to_wire(data.draw(values_of(message_type)), wire_type)
    except (OverflowError, ValueError, struct.error):
        return  # hypothesis drew a number that the version's bytes cannot hold, or an unknown error code
    once = from_wire(payload, message_type)
    assert from_wire(to_wire(once, wire_type), message_type) == once


@pytest.mark.parametrize(("wire_type", "message_type"), pairs())
@given(data=st.data())
@examples(EXAMPLES)
def test_a_message_is_written_as_kio_writes_it(wire_type: Any, message_type: Any, data: st.DataObject) -> None:
    try:
        message = from_wire(data.draw(st.from_type(wire_type)), message_type)
        payload = to_wire(message, wire_type)
    except ValueError:
        reject()  # hypothesis drew a time that kio cannot write or read
    assert written(message, wire_type) == written_by_kio(payload)


def nulls_emptied(payload: Any) -> str:
    """The payload's text for comparison: a null that the message cannot distinguish from "" counts as ""."""
    return repr(payload).replace("metadata=None", "metadata=''")


def test_times_are_milliseconds_in_messages_and_timedeltas_in_wire_types() -> None:
    request = JoinGroupRequest("group", 10_000, "consumer", [Protocol("range", b"\x00")], rebalance_timeout_ms=-1)
    payload = to_wire(request, JoinGroupRequestV9)
    assert payload.session_timeout == timedelta(seconds=10)
    assert payload.rebalance_timeout == timedelta(milliseconds=-1)
    assert from_wire(payload, JoinGroupRequest) == request


def test_a_field_that_a_version_lacks_comes_back_as_its_default() -> None:
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


def test_all_topics_and_no_topics_stay_distinct_where_the_version_distinguishes_them() -> None:
    choices: list[list[TopicToFetch] | None] = [None, []]
    for topics in choices:
        request = OffsetFetchRequest("group", topics)
        assert from_wire(to_wire(request, OffsetFetchRequestV7), OffsetFetchRequest) == request


def test_a_version_with_a_required_field_that_the_message_lacks_is_refused() -> None:
    commit = OffsetCommitRequest("group", [TopicToCommit("topic", [PartitionToCommit(0, 1)])])
    with pytest.raises(LayoutMismatch, match="session_timeout"):
        to_wire(commit, JoinGroupRequestV9)


def test_a_topic_is_named_by_its_id_where_the_version_has_only_that() -> None:
    topic_id = uuid4()
    commit = OffsetCommitRequest("group", [TopicToCommit("", [PartitionToCommit(0, 1)], text_of_topic_id(topic_id))])
    payload = to_wire(commit, OffsetCommitRequestV10)
    assert [topic.topic_id for topic in payload.topics] == [topic_id]
    assert from_wire(payload, OffsetCommitRequest) == commit


def test_an_error_code_that_kafka_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="9999"):
        to_wire(JoinGroupResponse(error_code=9_999), JoinGroupResponseV7)
