"""Signatures of request envelopes, and the files of their keys."""

import hmac
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator_logic.messages import RequestEnvelope
from streaming.contract.errors import CannotRun
from streaming.contract.identity import (
    NO_KEYS,
    IdentityKeys,
    PrincipalKey,
    Signer,
    is_signed,
    read_identity_keys,
    read_principal_key,
    read_principal_keys,
    signed,
)

KEY, OTHER_KEY, ALICES_KEY = b"k" * 32, b"o" * 32, b"a" * 32
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


KEYS = IdentityKeys((KEY,), {"User:alice": (ALICES_KEY, b"b" * 32), "User:bob": (b"c" * 32,)})


def test_a_gateway_signs_for_every_principal_and_a_principal_for_itself_only() -> None:
    bob = msgspec.structs.replace(ENVELOPE, principal="User:bob")
    assert KEYS.signer(signed(ENVELOPE, "g", KEY), "g") is KEYS.signer(signed(bob, "g", KEY), "g") is Signer.GATEWAY
    assert KEYS.signer(signed(ENVELOPE, "g", ALICES_KEY), "g") is Signer.PRINCIPAL
    assert KEYS.signer(signed(bob, "g", ALICES_KEY), "g") is None
    nobody = msgspec.structs.replace(ENVELOPE, principal=None)
    assert KEYS.signer(signed(nobody, "g", ALICES_KEY), "g") is None


def test_an_unknown_key_and_no_signature_count_for_nobody() -> None:
    assert KEYS.signer(signed(ENVELOPE, "g", OTHER_KEY), "g") is None
    assert KEYS.signer(ENVELOPE, "g") is None
    assert NO_KEYS.signer(signed(ENVELOPE, "g", KEY), "g") is None
    assert not NO_KEYS


def test_keys_can_be_found_again_by_names_that_do_not_reveal_them() -> None:
    ids = KEYS.ids()
    assert len(set(ids)) == 4
    assert KEYS.only(ids) == KEYS
    assert KEYS.only([]) == NO_KEYS
    assert KEYS.only(IdentityKeys((KEY,)).ids()) == IdentityKeys((KEY,))
    # Whose key it is belongs to the name: with another owner, a signature means something else.
    assert IdentityKeys((), {"User:bob": (ALICES_KEY,)}).ids()[0] not in ids


def test_keys_do_not_appear_in_texts() -> None:
    for shown in (repr(KEYS), repr(PrincipalKey("User:alice", ALICES_KEY)), *KEYS.ids()):
        assert "aaa" not in shown
        assert "kkk" not in shown


def test_a_file_of_principals_has_one_with_its_key_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "principals.key"
    file.write_bytes(b"User:alice " + ALICES_KEY + b"\n\nUser:CN=bob, O=b  " + KEY + b"\r\nUser:alice " + OTHER_KEY)
    alice, bob, rotated = read_principal_keys(str(file))
    assert (alice.principal, alice.key) == ("User:alice", ALICES_KEY)
    assert (bob.principal, bob.key) == ("User:CN=bob, O=b", KEY)
    assert rotated == PrincipalKey("User:alice", OTHER_KEY)
    assert read_principal_key(str(file)) == alice


def test_each_wrong_line_of_a_file_of_principals_is_told(tmp_path: Path) -> None:
    file = tmp_path / "principals.key"
    lines = [
        *(b"alice " + KEY, b"User: " + KEY, b"User:* " + KEY, b"Gateway:g " + KEY, b"User:\xff " + KEY, KEY),
        b"User:alice short",
        b"User:alice " + ALICES_KEY,
        b"User:bob " + ALICES_KEY,
    ]
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(CannotRun) as refused:
        read_principal_keys(str(file))
    expected = "expected User:NAME, a space and the key"
    problems = [
        *[expected] * 6,
        "the key of User:alice has 5 bytes; give it 32 or more",
        None,
        "User:bob has the key of User:alice; give each principal a key of its own",
    ]
    assert str(refused.value).splitlines() == [
        f"principal-key-file {file}: line {number}: {problem}" for number, problem in enumerate(problems, 1) if problem
    ]


def test_a_file_of_principals_without_a_key_or_none_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.key").write_bytes(b"\n")
    with pytest.raises(CannotRun, match="has no key: expected lines of User:NAME"):
        read_principal_keys(str(tmp_path / "empty.key"))
    with pytest.raises(CannotRun, match=r"^signing-key .*missing.key cannot be read: No such file"):
        read_principal_key(str(tmp_path / "missing.key"), "signing-key")
