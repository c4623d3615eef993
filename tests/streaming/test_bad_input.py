"""Twenty kinds of bad input at a running coordinator: the query lives, and other groups notice nothing."""

import base64
import json
from typing import Any

import pytest

from tests.streaming.coordinator_process import CoordinatorProcess
from tests.streaming.kafka_io import append, commit, correlation_id, dumped, envelope, reading

HEARTBEAT = {"groupId": "bad", "generationId": 1, "memberId": "m"}


def without(field: str) -> bytes:
    request = envelope("Heartbeat", 4, HEARTBEAT)
    del request[field]
    return dumped(request)


def a_request(**fields: Any) -> bytes:
    return dumped(envelope("Heartbeat", 4, HEARTBEAT) | fields)


LARGEST = 1024 * 1024 - 200

BAD_RECORDS: dict[str, tuple[bytes | None, bytes | None, int]] = {
    "unknown api": (b"bad", a_request(api="Fetch"), 42),
    "unknown version": (b"bad", a_request(version=99), 35),
    "version of another type": (b"bad", a_request(version="4"), 42),
    "field missing": (b"bad", a_request(body={"groupId": "bad"}), 42),
    "field of another type": (b"bad", a_request(body=HEARTBEAT | {"memberId": 5}), 42),
    "huge number": (b"bad", a_request(body=HEARTBEAT | {"generationId": 10**300}), 42),
    "another group's key": (b"other", a_request(), 42),
    "ListGroups": (b"bad", a_request(api="ListGroups", body={}), 42),
    "null key": (None, a_request(), 42),
    "key that is not UTF-8": (b"\xff\xfe", a_request(), 42),
    "key with a lone surrogate": (b"\xed\xa0\x80", a_request(), 42),
    "key with an overlong form": (b"\xc0\x80", a_request(), 42),
    "key beyond Unicode": (b"\xf4\x90\x80\x80", a_request(), 42),
    "very long key": (b"k" * 500_000, a_request(), 42),
    "body of base64 that is none": (
        b"bad",
        a_request(
            api="SyncGroup",
            version=3,
            body=HEARTBEAT | {"assignments": [{"memberId": "m", "assignment": "%"}]},
        ),
        42,
    ),
    "null value": (b"bad", None, 0),
    "no bytes": (b"bad", b"", 0),
    "no JSON": (b"bad", b"\x00\x01\x02", 0),
    "JSON that is cut off": (b"bad", a_request()[:-5], 0),
    "JSON of another shape": (b"bad", b"[[], {}]", 0),
    "deep nesting": (b"bad", b'{"api":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
    "reply partition out of range": (b"bad", a_request(replyPartition=10_000), 0),
    "negative reply partition": (b"bad", a_request(replyPartition=-1), 0),
    "no correlation id": (b"bad", without("correlationId"), 0),
    "a megabyte of nothing": (b"bad", b"\x00" * LARGEST, 0),
    "a megabyte of quotes": (b"bad", b'"' * LARGEST, 0),
}
"""By kind: key, value, and the error code of the answer, 0 where no address for one can be read."""


@pytest.mark.parametrize(("key", "value", "error_code"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_bad_input_is_answered_where_it_can_be_and_rejected(
    coordinator: CoordinatorProcess, key: bytes | None, value: bytes | None, error_code: int
) -> None:
    servers, topics, bystander = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    good = [commit(bystander, offset) for offset in (1, 2)]
    # The same batch has a good request before and after it.
    append(
        servers,
        topics.requests,
        (bystander.encode(), dumped(good[0])),
        (key, value),
        (bystander.encode(), dumped(good[1])),
    )
    with reading(servers, topics.responses) as responses, reading(servers, topics.rejects) as rejects:
        for request in good:
            wanted = request["correlationId"].encode()
            answer = responses.first(lambda record, wanted=wanted: record.key == wanted, "answers to others")  # type: ignore[misc]
            assert answer.value["errorCode"] == 0
        encoded = None if value is None else base64.b64encode(value).decode()
        reject = rejects.first(
            lambda record: record.key == key and record.value["value"] == encoded, "the reject"
        ).value
        assert reject["reason"]
        assert reject["errorCode"] != 0
        assert (reject["partition"], reject["offset"] >= 0, reject["timestamp"] > 0) == (0, True, True)
        if error_code:
            wanted = json.loads(value or b"")["correlationId"].encode()
            answer = responses.first(lambda record: record.key == wanted, "the answer")
            assert answer.value["errorCode"] == error_code
            assert answer.value["body"] is None
            assert answer.value["errorMessage"] == reject["reason"]


def test_duplicates_of_everything_do_no_harm(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    request = commit(group_id, 3)
    append(servers, topics.requests, *[(group_id.encode(), dumped(request))] * 5)
    with reading(servers, topics.responses) as responses:
        key = request["correlationId"].encode()
        found = responses.until(lambda records: sum(r.key == key for r in records) == 5, "five answers")
        assert {record.raw for record in found if record.key == key} == {
            next(record.raw for record in found if record.key == key)
        }


def test_an_answer_that_is_too_large_is_replaced_by_an_error(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    key = group_id.encode()

    def join(member_id: str = "") -> dict[str, Any]:
        body = {
            "groupId": group_id,
            "sessionTimeoutMs": 60_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": member_id,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": base64.b64encode(b"m" * 700_000).decode()}],
        }
        return envelope("JoinGroup", 3, body)

    with reading(servers, topics.responses) as responses, reading(servers, topics.rejects) as rejects:
        first = join()
        append(servers, topics.requests, (key, dumped(first)))
        wanted = first["correlationId"].encode()
        leader = responses.first(lambda record: record.key == wanted, "the leader's id").value["body"]["memberId"]
        again = join(leader)
        others = [(key, dumped(join())) for _ in range(11)]
        append(servers, topics.requests, *others, (key, dumped(again)))
        wanted_again = again["correlationId"].encode()
        answer = responses.first(lambda record: record.key == wanted_again, "what the leader is told instead")
        reject = rejects.first(lambda record: record.key == key, "the reject")
    assert answer.value["errorCode"] == reject.value["errorCode"] == -1
    assert "cannot be sent: a record for" in reject.value["reason"]
