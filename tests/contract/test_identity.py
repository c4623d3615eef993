"""Signatures of request envelopes, and the files of their keys."""

import hmac
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator_logic.messages import RequestEnvelope
from streaming.contract.errors import CannotRun
from streaming.contract.identity import is_signed, read_identity_keys, signed

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ENVELOPE = RequestEnvelope("Heartbeat", 4, "c-1", 0, msgspec.Raw(b'{"groupId":"g"}'), "app", "/10.0.0.1", "User:alice")


def test_a_signature_holds_after_the_way_through_the_topic() -> None:
    sent = msgspec.json.encode(signed(ENVELOPE, "g", KEY))
    assert is_signed(msgspec.json.decode(sent, type=RequestEnvelope), "g", [OTHER_KEY, KEY])


def test_a_signature_is_what_the_documents_say() -> None:
    content = ["g", "c-1", "Heartbeat", 4, "app", "/10.0.0.1", "User:alice", b'{"groupId":"g"}']
    expected = hmac.digest(KEY, msgspec.msgpack.encode(content), "sha256")
    assert signed(ENVELOPE, "g", KEY).signature == expected


@pytest.mark.parametrize(
    "change",
    [
        {"api": "LeaveGroup"},
        {"version": 3},
        {"correlation_id": "c-2"},
        {"client_id": "other"},
        {"client_host": None},
        {"principal": "User:admin"},
        {"body": msgspec.Raw(b'{"groupId":"h"}')},
        {"signature": None},
        {"signature": b""},
        {"signature": b"\x00" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
def test_no_part_of_a_signed_request_can_be_changed(change: dict[str, Any]) -> None:
    forged = msgspec.structs.replace(signed(ENVELOPE, "g", KEY), **change)
    assert not is_signed(forged, "g", [KEY])


def test_a_signature_holds_for_its_group_and_its_key_only() -> None:
    envelope = signed(ENVELOPE, "g", KEY)
    assert not is_signed(envelope, "h", [KEY])
    assert not is_signed(envelope, "g", [OTHER_KEY])
    assert not is_signed(envelope, "g", [])


def test_a_file_has_a_key_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "identity.key"
    file.write_bytes(KEY + b"\n\n" + OTHER_KEY + b"\r\n")
    assert read_identity_keys(str(file)) == (KEY, OTHER_KEY)
    assert read_identity_keys(None) == ()


@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", KEY + b"\nshort\n"])
def test_a_file_with_a_short_key_or_none_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "identity.key"
    file.write_bytes(content)
    with pytest.raises(CannotRun, match="32 bytes or more"):
        read_identity_keys(str(file))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"identity-key-file .*missing.key cannot be read: No such file"):
        read_identity_keys(str(tmp_path / "missing.key"))
