"""Reading hostile records, without Spark or Kafka."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request
from streaming.contract.topics import TopicNames
from streaming.job.rows.reading import Rejection
from streaming.job.rows.writing import RowWriter
from tests.job.rows.records import HEARTBEAT, RESPONSE_PARTITIONS, a_request, read, rejected


def test_a_request_is_read_with_its_place_and_its_reply_address() -> None:
    request = read(a_request(clientId="app", clientHost="/10.0.0.1"))
    assert isinstance(request, Request)
    assert request.place == (1_000, 2, 7)
    assert request.address == ReplyAddress("Heartbeat", 4, "c1", 3, 1_000)
    assert (request.client_id, request.client_host) == ("app", "/10.0.0.1")
    assert msgspec.to_builtins(request.body) | HEARTBEAT == msgspec.to_builtins(request.body)


ANSWERED = {
    "unknown api": (a_request(api="Fetch"), Error.INVALID_REQUEST, "unknown api 'Fetch'"),
    "empty api": (a_request(api=""), Error.INVALID_REQUEST, "unknown api ''"),
    "version too high": (a_request(version=99), Error.UNSUPPORTED_VERSION, "version 99 is not served"),
    "version negative": (a_request(version=-1), Error.UNSUPPORTED_VERSION, "version -1 is not served"),
    "version no integer": (a_request(version="4"), Error.INVALID_REQUEST, "$.version"),
    "version out of range": (a_request(version=2**40), Error.INVALID_REQUEST, "$.version"),
    "api no text": (a_request(api=7), Error.INVALID_REQUEST, "$.api"),
    "api missing": (
        {k: v for k, v in a_request().items() if k != "api"},
        Error.INVALID_REQUEST,
        "missing required field `api`",
    ),
    "body missing": (
        {k: v for k, v in a_request().items() if k != "body"},
        Error.INVALID_REQUEST,
        "missing required field `body`",
    ),
    "body null": (a_request(body=None), Error.INVALID_REQUEST, "not a Heartbeat request"),
    "body a list": (a_request(body=[1]), Error.INVALID_REQUEST, "not a Heartbeat request"),
    "field missing": (a_request(body={"groupId": "g"}), Error.INVALID_REQUEST, "generationId"),
    "field of another type": (
        a_request(body=HEARTBEAT | {"generationId": "1"}),
        Error.INVALID_REQUEST,
        "$.generationId",
    ),
    "number beyond int32": (a_request(body=HEARTBEAT | {"generationId": 2**31}), Error.INVALID_REQUEST, "$.gen"),
    "huge number": (a_request(body=HEARTBEAT | {"generationId": 10**400}), Error.INVALID_REQUEST, "$.gen"),
    "fraction": (a_request(body=HEARTBEAT | {"generationId": 1.5}), Error.INVALID_REQUEST, "$.generationId"),
    "another group's key": (a_request(body=HEARTBEAT | {"groupId": "h"}), Error.INVALID_REQUEST, "key is 'g'"),
    "ListGroups": (a_request(api="ListGroups", body={}), Error.INVALID_REQUEST, "directory topic"),
    "clientId no text": (a_request(clientId={"a": 1}), Error.INVALID_REQUEST, "$.clientId"),
}


@pytest.mark.parametrize(("request_", "error", "reason"), ANSWERED.values(), ids=ANSWERED)
def test_a_record_with_a_reply_address_is_rejected_with_an_answer(
    request_: dict[str, Any], error: Error, reason: str
) -> None:
    reject = rejected(request_)
    assert reject.error is error
    assert reason in reject.reason
    assert reject.address is not None
    assert (reject.address.correlation_id, reject.address.reply_partition) == ("c1", 3)


UNANSWERABLE = {
    "null value": None,
    "no bytes": b"",
    "no JSON": b"heartbeat please",
    "cut off": json.dumps(a_request()).encode()[:-1],
    "two documents": json.dumps(a_request()).encode() * 2,
    "not UTF-8": b'{"api": "\xff\xfe"}',
    "a lone surrogate": b'{"api": "Heartbeat", "correlationId": "\\ud800", "replyPartition": 0}',
    "null": b"null",
    "a list": b"[1, 2]",
    "a number": b"1e999",
    "nested too deeply": json.dumps(a_request(body="X")).encode().replace(b'"X"', b"[" * 9_999 + b"]" * 9_999),
    "correlationId missing": {k: v for k, v in a_request().items() if k != "correlationId"},
    "correlationId empty": a_request(correlationId=""),
    "correlationId too long": a_request(correlationId="c" * 256),
    "correlationId no text": a_request(correlationId=5),
    "replyPartition missing": {k: v for k, v in a_request().items() if k != "replyPartition"},
    "replyPartition negative": a_request(replyPartition=-1),
    "replyPartition beyond the topic": a_request(replyPartition=RESPONSE_PARTITIONS),
    "replyPartition huge": a_request(replyPartition=10**30),
    "replyPartition true": a_request(replyPartition=True),
}


@pytest.mark.parametrize("value", UNANSWERABLE.values(), ids=UNANSWERABLE)
def test_a_record_without_a_reply_address_is_rejected_without_an_answer(value: object) -> None:
    reject = rejected(value)
    assert reject.error is Error.INVALID_REQUEST
    assert reject.reason
    assert reject.address is None


@pytest.mark.parametrize("key", [None, b"\xff", b"\xed\xa0\x80", b"g" * 2**15], ids=["null", "ff", "cesu", "long"])
def test_a_key_that_is_not_a_group_id_is_rejected_with_an_answer(key: bytes | None) -> None:
    reject = rejected(a_request(), key)
    assert reject.cause == "key"
    assert reject.address is not None


def test_requests_for_several_groups_or_none_may_have_any_key() -> None:
    for api, version, body in (
        ("FindCoordinator", 4, {"coordinatorKeys": ["a"]}),
        ("DescribeGroups", 5, {"groups": ["a", "b"]}),
        ("DeleteGroups", 2, {"groupsNames": ["a", "b"]}),
        ("OffsetFetch", 8, {"groups": [{"groupId": "a"}]}),
    ):
        assert isinstance(read(a_request(api=api, version=version, body=body), b"elsewhere"), Request)
    single = a_request(api="OffsetFetch", version=7, body={"groupId": "a"})
    assert rejected(single, b"elsewhere").cause == "key"


@given(st.one_of(st.none(), st.binary(max_size=60)), st.one_of(st.none(), st.binary(max_size=200)))
def test_no_bytes_raise(key: bytes | None, value: bytes | None) -> None:
    request = read(value, key)
    if isinstance(request, Rejection):
        row = RowWriter(TopicNames(), "g", 0).reject(request)
        assert row.value is not None
        assert json.loads(row.value)["reason"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*a_request(), "clientId"]), JSON),
    st.sampled_from([*APIS, "ListGroups", "Nope"]),
    st.dictionaries(st.sampled_from(["groupId", "generationId", "memberId", "topics", "groups", "members"]), JSON),
)
def test_no_json_raises(fields: dict[str, Any], api: str, body: dict[str, Any]) -> None:
    read(a_request(api=api, body=body) | fields)
