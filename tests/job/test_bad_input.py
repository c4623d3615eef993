"""Many kinds of bad input for a running coordinator: the query goes on, and other groups are not affected."""

import base64
import json
from typing import Any

import pytest

from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, correlation_id, dumped, envelope

HEARTBEAT = {"groupId": "bad", "generationId": 1, "memberId": "m"}


def without(field: str) -> bytes:
    request = envelope("Heartbeat", 4, HEARTBEAT)
    del request[field]
    return dumped(request)


def heartbeat(**fields: Any) -> bytes:
    return dumped(envelope("Heartbeat", 4, HEARTBEAT) | fields)


LARGEST = 1024 * 1024 - 200

BAD_RECORDS: dict[str, tuple[bytes | None, bytes | None, int]] = {
    "unknown api": (b"bad", heartbeat(api="Fetch"), 42),
    "unknown version": (b"bad", heartbeat(version=99), 35),
    "version of another type": (b"bad", heartbeat(version="4"), 42),
    "field missing": (b"bad", heartbeat(body={"groupId": "bad"}), 42),
    "field of another type": (b"bad", heartbeat(body=HEARTBEAT | {"memberId": 5}), 42),
    "huge number": (b"bad", heartbeat(body=HEARTBEAT | {"generationId": 10**300}), 42),
    "another group's key": (b"other", heartbeat(), 42),
    "ListGroups": (b"bad", heartbeat(api="ListGroups", body={}), 42),
    "null key": (None, heartbeat(), 42),
    "key that is not UTF-8": (b"\xff\xfe", heartbeat(), 42),
    "key with a lone surrogate": (b"\xed\xa0\x80", heartbeat(), 42),
    "key with an overlong form": (b"\xc0\x80", heartbeat(), 42),
    "key beyond Unicode": (b"\xf4\x90\x80\x80", heartbeat(), 42),
    "very long key": (b"k" * 500_000, heartbeat(), 42),
    "body with invalid base64": (
        b"bad",
        heartbeat(
            api="SyncGroup",
            version=3,
            body=HEARTBEAT | {"assignments": [{"memberId": "m", "assignment": "%"}]},
        ),
        42,
    ),
    "null value": (b"bad", None, 0),
    "empty value": (b"bad", b"", 0),
    "not JSON": (b"bad", b"\x00\x01\x02", 0),
    "truncated JSON": (b"bad", heartbeat()[:-5], 0),
    "JSON of another shape": (b"bad", b"[[], {}]", 0),
    "deep nesting": (b"bad", b'{"api":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
    "reply partition out of range": (b"bad", heartbeat(replyPartition=10_000), 0),
    "negative reply partition": (b"bad", heartbeat(replyPartition=-1), 0),
    "no correlation id": (b"bad", without("correlationId"), 0),
    "a megabyte of zeros": (b"bad", b"\x00" * LARGEST, 0),
    "a megabyte of quotes": (b"bad", b'"' * LARGEST, 0),
}
"""By kind: key, value, and the error code of the response; 0 where the value has no address for a response."""


@pytest.mark.parametrize(("key", "value", "error_code"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_bad_input_is_rejected_and_answered_where_it_has_an_address(
    coordinator: CoordinatorProcess, key: bytes | None, value: bytes | None, error_code: int
) -> None:
    servers, topics, bystander = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    good = [commit(bystander, offset) for offset in (1, 2)]
    # The same batch has a valid request before and after it.
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


def test_a_response_that_is_too_large_is_replaced_by_an_error(coordinator: CoordinatorProcess) -> None:
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
        answer = responses.first(lambda record: record.key == wanted_again, "the error response for the leader")
        reject = rejects.first(lambda record: record.key == key, "the reject")
    assert answer.value["errorCode"] == reject.value["errorCode"] == -1
    assert "cannot be sent: a record for" in reject.value["reason"]


def test_records_that_are_small_in_the_topic_only_are_cut_and_others_are_answered(
    coordinator: CoordinatorProcess,
) -> None:
    """The topic's limit of 1 MiB counts compressed bytes: 30 MB of zeros are 29 kB there."""
    servers, topics, bystander = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    join = envelope(
        "JoinGroup",
        3,
        {
            "groupId": "compressed join",
            "sessionTimeoutMs": 60_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": "",
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": base64.b64encode(bytes(4_900_000)).decode()}],
        },
    )
    with_long_key, good = commit("compressed key", 1), commit(bystander, 1)
    long_key = b"k" * 9_000_000
    append(
        servers,
        topics.requests,
        (b"compressed zeros", bytes(30_000_000)),
        (b"compressed join", dumped(join)),
        (long_key, dumped(with_long_key)),
        (bystander.encode(), dumped(good)),
        compression_type="gzip",
        message_max_bytes=40_000_000,
    )
    with reading(servers, topics.responses) as responses, reading(servers, topics.rejects) as rejects:
        for request, error_code in ((good, 0), (join, 42), (with_long_key, 42)):
            wanted = request["correlationId"].encode()
            answer = responses.first(lambda record, wanted=wanted: record.key == wanted, "the answer")  # type: ignore[misc]
            assert answer.value["errorCode"] == error_code
        zeros = rejects.first(lambda record: record.key == b"compressed zeros", "the zeros' reject").value
        assert zeros["valueCutFrom"] == 30_000_000
        assert base64.b64decode(zeros["value"]) == bytes(4 * 1024 * 1024)
        joined = rejects.first(lambda record: record.key == b"compressed join", "the join's reject").value
        assert joined["valueCutFrom"] == len(dumped(join))
        key_start = long_key[: 4 * 1024 * 1024]
        keyed = rejects.first(lambda record: record.key == key_start, "the reject of the long key").value
        assert keyed["keyCutFrom"] == len(long_key)
