"""Authenticates the gateway's own connections to brokers, where librdkafka does not do it.

PLAIN is RFC 4616, SCRAM is RFC 5802 and RFC 7677; both inside SaslAuthenticate (KIP-152).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from streaming.gateway.upstream import Forward

__all__ = ["SaslRefused", "authenticate"]

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST_ITERATIONS = 4096
"""What RFC 7677 demands, and Kafka's own default: fewer would give the password away to who plays a broker."""


class SaslRefused(Exception):
    """The broker does not let the gateway in, or cannot prove that it knows the password."""


async def authenticate(ask: Forward, librdkafka: Mapping[str, str]) -> None:
    """Authenticate a new connection as librdkafka's properties say; nothing where ``security.protocol`` has no SASL.

    Raises :class:`SaslRefused`, also for a mechanism that is not known here, and ``ValueError`` or ``LookupError`` for
    an answer that makes no sense.
    """
    if not librdkafka.get("security.protocol", "").upper().startswith("SASL"):
        return
    mechanism = librdkafka.get("sasl.mechanism") or librdkafka.get("sasl.mechanisms") or "GSSAPI"
    if mechanism != "PLAIN" and mechanism not in DIGESTS:
        raise SaslRefused(f"the gateway's own connections know PLAIN and SCRAM, not {mechanism}")
    name, password = librdkafka.get("sasl.username", ""), librdkafka.get("sasl.password", "")
    handshake: Any = await ask(SaslHandshakeRequest(mechanism=mechanism))
    if handshake.error_code is not ErrorCode.none:
        raise SaslRefused(f"{mechanism}: {handshake.error_code.name.upper()}")
    if mechanism == "PLAIN":
        await _exchange(ask, f"\0{name}\0{password}".encode())
    else:
        await _scram(ask, DIGESTS[mechanism], name, password)


async def _exchange(ask: Forward, token: bytes) -> bytes:
    answer: Any = await ask(SaslAuthenticateRequest(auth_bytes=token))
    if answer.error_code is not ErrorCode.none:
        raise SaslRefused(answer.error_message or answer.error_code.name.upper())
    token_back: bytes = answer.auth_bytes
    return token_back


async def _scram(ask: Forward, digest: str, name: str, password: str) -> None:
    nonce = secrets.token_urlsafe(24)
    first = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = (await _exchange(ask, f"n,,{first}".encode())).decode()
    told = dict(part.split("=", 1) for part in challenge.split(","))
    iterations = int(told["i"])
    if not told["r"].startswith(nonce) or iterations < FEWEST_ITERATIONS:
        raise SaslRefused("the broker's SCRAM challenge is not one for this exchange")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(told["s"]), iterations)
    last = f"c=biws,r={told['r']}"
    exchange = f"{first},{challenge},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), exchange, digest)
    proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
    verdict = await _exchange(ask, f"{last},p={base64.b64encode(proof).decode()}".encode())
    server_key = hmac.digest(salted, b"Server Key", digest)
    expected = b"v=" + base64.b64encode(hmac.digest(server_key, exchange, digest))
    if not hmac.compare_digest(verdict, expected):
        raise SaslRefused("the broker did not prove that it knows the password")
