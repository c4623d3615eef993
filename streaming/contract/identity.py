"""Who vouches for the sender that a request names: a signature of the gateway in the envelope.

Anyone who can write to ``group-requests`` can name any principal and any host. A gateway knows both: the broker has
authenticated its client. The gateways and the job share a key, and the job takes for true only what is signed with it.

The signature is the HMAC-SHA256 of a MessagePack array, in its shortest encoding: group id, correlation id, api,
version, client id, client host, principal, and the bytes of the body as they are in the envelope's JSON.
"""

import hmac
from collections.abc import Sequence
from pathlib import Path

import msgspec

from coordinator_logic.messages import RequestEnvelope
from streaming.contract.errors import CannotRun

SHORTEST_KEY_BYTES = 32

_encode = msgspec.msgpack.Encoder().encode


def signed(envelope: RequestEnvelope, group_id: str, key: bytes) -> RequestEnvelope:
    """The envelope with the signature of a request to this group."""
    return msgspec.structs.replace(envelope, signature=_signature(envelope, group_id, key))


def is_signed(envelope: RequestEnvelope, group_id: str, keys: Sequence[bytes]) -> bool:
    """Whether one of the keys has signed the request. It takes the same time for every wrong signature."""
    signature = envelope.signature
    if signature is None:
        return False
    return any(hmac.compare_digest(signature, _signature(envelope, group_id, key)) for key in keys)


def _signature(envelope: RequestEnvelope, group_id: str, key: bytes) -> bytes:
    content = _encode(
        (
            group_id,
            envelope.correlation_id,
            envelope.api,
            envelope.version,
            envelope.client_id,
            envelope.client_host,
            envelope.principal,
            bytes(envelope.body),
        )
    )
    return hmac.digest(key, content, "sha256")


def read_identity_keys(file: str | None) -> tuple[bytes, ...]:
    """Read the keys, one a line; none without a file. A gateway signs with the first, the job accepts all.

    Raises:
        CannotRun: the file cannot be read, has no key, or has one of less than 32 bytes.
    """
    if file is None:
        return ()
    try:
        lines = Path(file).read_bytes().splitlines()
    except OSError as error:
        raise CannotRun(f"identity-key-file {file} cannot be read: {error.strerror}") from error
    keys = tuple(line.strip() for line in lines if line.strip())
    if not keys or min(map(len, keys)) < SHORTEST_KEY_BYTES:
        raise CannotRun(f"identity-key-file {file}: a key is a line of {SHORTEST_KEY_BYTES} bytes or more")
    return keys
