"""Authenticates the gateway's own connections to brokers, those that librdkafka does not open.

PLAIN is RFC 4616, SCRAM is RFC 5802 and RFC 7677; SaslAuthenticate requests carry both (KIP-152).
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

from streaming.gateway.wire.forwarding import Forward

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS = 4096
"""RFC 7677's minimum and Kafka's default. Fewer would reveal the password to a server posing as a broker."""


class SaslRefused(Exception):
    """The broker refused the credentials, or did not prove that it knows the password."""


async def authenticate(send: Forward, librdkafka: Mapping[str, str]) -> None:
    """Authenticate a new connection, or do nothing if ``security.protocol`` does not include SASL.

    Raises :class:`SaslRefused`, also for an unsupported mechanism, and ``ValueError`` or ``LookupError`` for a
    malformed response.

    send: sends a request over the connection.
    librdkafka: properties with the mechanism and the credentials.
    """
    if not librdkafka.get("security.protocol", "").upper().startswith("SASL"):
        return
    mechanism = librdkafka.get("sasl.mechanism") or librdkafka.get("sasl.mechanisms") or "GSSAPI"
    if mechanism != "PLAIN" and mechanism not in DIGESTS:
        raise SaslRefused(f"the gateway's own connections support PLAIN and SCRAM, not {mechanism}")
    name, password = librdkafka.get("sasl.username", ""), librdkafka.get("sasl.password", "")
    handshake: Any = await send(SaslHandshakeRequest(mechanism=mechanism))
    if handshake.error_code is not ErrorCode.none:
        raise SaslRefused(f"{mechanism}: {handshake.error_code.name.upper()}")
    if mechanism == "PLAIN":
        await _exchange(send, f"\0{name}\0{password}".encode())
    else:
        await _scram(send, DIGESTS[mechanism], name, password)


async def _exchange(send: Forward, token: bytes) -> bytes:
    answer: Any = await send(SaslAuthenticateRequest(auth_bytes=token))
    if answer.error_code is not ErrorCode.none:
        raise SaslRefused(answer.error_message or answer.error_code.name.upper())
    server_token: bytes = answer.auth_bytes
    return server_token


async def _scram(send: Forward, digest: str, name: str, password: str) -> None:
    nonce = secrets.token_urlsafe(24)
    first = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = (await _exchange(send, f"n,,{first}".encode())).decode()
    attributes = dict(part.split("=", 1) for part in challenge.split(","))
    iterations = int(attributes["i"])
    if not attributes["r"].startswith(nonce) or iterations < MIN_ITERATIONS:
        raise SaslRefused("the broker's SCRAM challenge has a wrong nonce or too few iterations")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(attributes["s"]), iterations)
    last = f"c=biws,r={attributes['r']}"
    exchange = f"{first},{challenge},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), exchange, digest)
    proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
    verdict = await _exchange(send, f"{last},p={base64.b64encode(proof).decode()}".encode())
    server_key = hmac.digest(salted, b"Server Key", digest)
    expected = b"v=" + base64.b64encode(hmac.digest(server_key, exchange, digest))
    if not hmac.compare_digest(verdict, expected):
        raise SaslRefused("the broker did not prove that it knows the password")
