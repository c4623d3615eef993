"""The journal tells what a gateway vouches for from what a sender claims."""

import json
from typing import Any

import msgspec

from coordinator_logic.messages import RequestEnvelope
from coordinator_logic.records import RequestCause, entry_decoder
from streaming.contract.identity import IdentityKeys, signed
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.rows.records import KafkaRecord
from tests.support.request_events import commit, dumped

NOW = 1_000_000
TOPICS = TopicNames()
KEY, OLD_KEY = b"k" * 32, b"o" * 32
GUARDED = Settings(TOPICS, 4, identity_keys=IdentityKeys((KEY, OLD_KEY)))

ALICE = commit("g", 1, clientHost="/10.0.0.1", principal="User:alice")


def signed_by(key: bytes, request: dict[str, Any] = ALICE, group_id: str = "g") -> bytes:
    envelope = msgspec.json.decode(dumped(request), type=RequestEnvelope)
    return msgspec.json.encode(signed(envelope, group_id, key))


def forged(**fields: object) -> bytes:
    """A request with the signature of another one."""
    return dumped(json.loads(signed_by(KEY)) | fields)


def causes(value: bytes, settings: Settings = GUARDED) -> set[tuple[str | None, str, bool]]:
    """Principal, host and mark in the journal of a commit."""
    rows = process(settings, "g", [KafkaRecord(NOW, 0, 0, b"g", value)], None, NOW + 100).rows
    answers = [json.loads(row.value or b"") for row in rows if row.topic == TOPICS.responses]
    assert [answer["errorCode"] for answer in answers] == [0], "no request is refused for its signature"
    entries = [entry_decoder().decode(row.value or b"") for row in rows if row.topic == TOPICS.journal]
    assert entries
    found = [entry.cause for entry in entries if isinstance(entry.cause, RequestCause)]
    return {(cause.principal, cause.client_host, cause.claimed) for cause in found}


def test_what_a_sender_says_about_itself_is_marked_as_claimed() -> None:
    assert causes(dumped(ALICE)) == {("User:alice", "/10.0.0.1", True)}


def test_what_a_gateway_has_signed_is_not() -> None:
    for key in (KEY, OLD_KEY):
        assert causes(signed_by(key)) == {("User:alice", "/10.0.0.1", False)}


def test_a_signature_of_another_key_counts_for_nothing() -> None:
    assert causes(signed_by(b"x" * 32)) == {("User:alice", "/10.0.0.1", True)}


def test_a_signature_cannot_be_taken_for_another_request() -> None:
    assert causes(forged(principal="User:admin")) == {("User:admin", "/10.0.0.1", True)}
    assert causes(forged(clientHost="/10.9.9.9")) == {("User:alice", "/10.9.9.9", True)}
    other = commit("g", 1_000)["body"]
    assert causes(forged(body=other)) == {("User:alice", "/10.0.0.1", True)}
    assert causes(signed_by(KEY, group_id="another group")) == {("User:alice", "/10.0.0.1", True)}


def test_without_a_key_everything_is_claimed() -> None:
    assert causes(signed_by(KEY), Settings(TOPICS, 4)) == {("User:alice", "/10.0.0.1", True)}


def test_a_journal_of_an_earlier_release_reads_as_claimed() -> None:
    cause = msgspec.json.decode(
        b'{"type":"Request","api":"Heartbeat","version":4,"memberId":"","clientId":"","clientHost":"","correlationId":"c",'
        b'"partition":0,"offset":0,"principal":"User:alice"}',
        type=RequestCause,
    )
    assert cause.claimed


def test_the_keys_do_not_appear_in_the_settings_as_text() -> None:
    assert "kkkk" not in repr(GUARDED)
