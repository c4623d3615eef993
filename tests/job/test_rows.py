"""Reading hostile records and writing rows, without Spark or Kafka."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request, Response
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import DescribedGroup, DescribeGroupsResponse, HeartbeatResponse
from coordinator_logic.records import (
    EXPIRED,
    GroupCreated,
    JournalEntry,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    RequestCause,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from streaming.contract.topics import MAX_REQUEST_BYTES, MAX_ROW_BYTES, TopicNames
from streaming.job import rows
from streaming.job.measures import AnsweredRequest, Increment, MovedBack
from streaming.job.rows import KafkaRecord, Rejection

RESPONSE_PARTITIONS = 4
TOPICS = TopicNames("p-")
HEARTBEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


def a_request(**fields: object) -> dict[str, Any]:
    return {
        "api": "Heartbeat",
        "version": 4,
        "correlationId": "c1",
        "replyPartition": 3,
        "body": HEARTBEAT,
    } | fields


def read(value: object, key: bytes | None = b"g") -> Request | Rejection:
    raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return rows.read_request(KafkaRecord(1_000, 2, 7, key, raw), RESPONSE_PARTITIONS)


def rejected(value: object, key: bytes | None = b"g") -> Rejection:
    request = read(value, key)
    assert isinstance(request, Rejection)
    return request


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
        row = rows.reject_row(TOPICS, request)
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


def test_a_reject_row_has_the_place_and_the_bytes_of_its_record() -> None:
    row = rows.reject_row(TOPICS, rejected(b"\xffnonsense", b"\xfekey"))
    assert (row.topic, row.partition, row.key) == ("p-group-rejects", None, b"\xfekey")
    reject = json.loads(row.value or b"")
    assert base64.b64decode(reject.pop("value")) == b"\xffnonsense"
    assert "not UTF-8" in reject.pop("reason")
    assert reject == {"errorCode": 42, "partition": 2, "offset": 7, "timestamp": 1_000}


def test_the_largest_record_that_kafka_accepts_fits_into_the_rejects_topic() -> None:
    for value in (b"\x00" * MAX_REQUEST_BYTES, b'"' * MAX_REQUEST_BYTES):
        reject = rejected(value, b"\x00" * 30_000)
        rows.reject_row(TOPICS, reject)
    long_key = rejected(a_request(), b"\x00" * MAX_REQUEST_BYTES)
    assert long_key.address is not None
    rows.reject_row(TOPICS, long_key)
    rows.error_row(TOPICS, long_key.address, "\x00" * MAX_REQUEST_BYTES, long_key.error, "\x00" * 10**7, 0)


def test_a_response_row_goes_to_the_partition_that_the_request_named() -> None:
    response = Response(ReplyAddress("Heartbeat", 4, "c1", 3, 1_000), "g", 27, HeartbeatResponse(27))
    row = rows.response_row(TOPICS, response, 1_234)
    assert (row.topic, row.partition, row.key) == ("p-group-responses", 3, b"c1")
    assert json.loads(row.value or b"") == {
        "api": "Heartbeat",
        "version": 4,
        "correlationId": "c1",
        "groupId": "g",
        "errorCode": 27,
        "body": {"errorCode": 27},
        "errorMessage": None,
        "jobEpoch": 0,
    }
    assert row.measure == AnsweredRequest("Heartbeat", 27, 234)


def test_a_response_beyond_the_limit_of_its_topic_raises() -> None:
    groups = [DescribedGroup("g", error_message="x" * MAX_ROW_BYTES)]
    address = ReplyAddress("DescribeGroups", 5, "c", 0, 0)
    with pytest.raises(rows.RowTooLarge, match="group-responses"):
        rows.response_row(TOPICS, Response(address, "g", 0, DescribeGroupsResponse(groups)), 0)


def test_a_completed_rebalance_is_measured_in_the_journal() -> None:
    cause = RequestCause("SyncGroup", 5, "m", "c", "/h", "id", 0, 0)
    stable = JournalEntry("g", "0-0-0", 2, 5, StateChanged("CompletingRebalance", "Stable", ""), cause)
    created = JournalEntry("g", "0-0-0", 1, 5, GroupCreated(), cause)
    assert rows.journal_row(TOPICS, stable).measure == Increment("rebalances_completed", 1)
    assert rows.journal_row(TOPICS, created).measure is None


def test_a_journal_record_counts_the_offsets_that_it_made_lower_by_what_did_it() -> None:
    committed = OffsetsCommitted([OffsetCommitted("t", partition, 1, None, "", 0, None) for partition in range(3)])
    for api, record, measure in (
        ("OffsetCommit", committed, MovedBack("commit", 2, 3)),
        ("ResetOffsets", committed, MovedBack("reset", 2, 3)),
        ("WriteTxnMarkers", TransactionEnded(1, 0, True), MovedBack("commit", 2, 0)),
    ):
        entry = JournalEntry("g", "0-0-0", 1, 5, record, RequestCause(api, 0, "m", "c", "/h", "id", 0, 0))
        assert rows.journal_row(TOPICS, entry, moved_back=2).measure == measure


def test_journal_records_of_offsets_count_partitions() -> None:
    cause = RequestCause("OffsetCommit", 5, "m", "c", "/h", "id", 0, 0)
    committed = OffsetCommitted("t", 0, 1, None, "", 0, None)
    for record, measure in (
        (OffsetsCommitted([committed]), Increment("offsets_committed", 1)),
        (TransactionalOffsetsCommitted("x", 1, 0, [committed, committed]), Increment("offsets_committed", 2)),
        (
            OffsetsDeleted([TopicPartitions("t", [0, 1]), TopicPartitions("u", [5])], "deleted by a request"),
            Increment("offsets_deleted", 3),
        ),
        (OffsetsDeleted([TopicPartitions("t", [0])], EXPIRED), Increment("offsets_expired", 1)),
    ):
        assert rows.journal_row(TOPICS, JournalEntry("g", "0-0-0", 1, 5, record, cause)).measure == measure
