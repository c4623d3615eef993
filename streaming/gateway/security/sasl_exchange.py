"""Reads a client's principal from its SASL exchange with the real broker.

The broker authenticates. The gateway relays the tokens and reads the user name from them: when the broker reports
success, that user is the principal. PLAIN is RFC 4616, SCRAM is RFC 5802, OAUTHBEARER is RFC 7628.
"""

import base64
import json
import time
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.gateway.wire.frames import FrameRefused, RefusalReason

ANONYMOUS = "User:ANONYMOUS"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""Mechanisms whose tokens contain the user name. In those of GSSAPI it is encrypted for the broker."""

REFUSED_MECHANISM = "its tokens do not name the user to the gateway, which has to know the principal of each request"
"""The reason for any other mechanism, GSSAPI above all."""

SCRAM_SUCCESS = b"v="
"""The prefix of the server's final SCRAM message. Its response to the first message has no error code either."""


class SaslExchange:
    """The SASL exchanges of one connection: a client may reauthenticate before its session expires (KIP-368).

    oauth_principal_claim: the claim of an OAUTHBEARER token that is the user's name to the broker.
    """

    def __init__(self, oauth_principal_claim: str) -> None:
        self._claim = oauth_principal_claim
        self._mechanism = ""
        self._name: str | None = None
        self._principal: str | None = None
        self._expires_at = float("inf")

    @property
    def principal(self) -> str | None:
        """The authenticated principal, ``User:alice``; None before authentication and after the session has expired."""
        return self._principal if time.monotonic() < self._expires_at else None

    def start(self, request: RequestPayload) -> bool:
        """Start an exchange with a SaslHandshake request; return whether its mechanism is supported."""
        handshake: Any = request
        self._mechanism = handshake.mechanism
        self._name = None
        return self._mechanism in MECHANISMS

    def read_token(self, request: RequestPayload) -> None:
        """Read the user name from a SaslAuthenticate request, if it is the first of its exchange.

        Raises :class:`FrameRefused` if the token has no user name.
        """
        token: bytes = request.auth_bytes  # type: ignore[union-attr]
        if self._name is not None:
            return
        try:
            self._name = self._read_name(token)
        except (ValueError, LookupError) as failure:
            detail = f"{self._mechanism or 'no mechanism'}: {failure}"
            raise FrameRefused(RefusalReason.SASL_EXCHANGE, detail) from failure

    def read_response(self, response: ResponsePayload) -> None:
        """Update the principal from the broker's response to the last SaslAuthenticate request."""
        answer: Any = response
        if answer.error_code is not ErrorCode.none:
            self._name = None
            return
        if not self._is_success(answer.auth_bytes):
            return
        lifetime = getattr(answer, "session_lifetime", timedelta(0))
        self._expires_at = time.monotonic() + lifetime.total_seconds() if lifetime else float("inf")
        self._principal, self._name = f"User:{self._name}", None

    def _read_name(self, token: bytes) -> str:
        if self._mechanism == "PLAIN":
            return _plain_name(token)
        return _oauth_name(token, self._claim) if self._mechanism == "OAUTHBEARER" else _scram_name(token)

    def _is_success(self, server_token: bytes) -> bool:
        """Whether a response without an error code ends the exchange; brokers send the errors of some steps so too."""
        if self._mechanism == "OAUTHBEARER":
            # A refused token is answered with JSON, and with an error code only after the client's next message.
            return not server_token
        return self._mechanism == "PLAIN" or server_token.startswith(SCRAM_SUCCESS)


def _plain_name(token: bytes) -> str:
    """Parse ``[authzid] NUL authcid NUL passwd``; the broker refuses an authzid that differs from the authcid."""
    _authzid, name, _password = token.decode().split("\0")
    return name


def _oauth_name(token: bytes, claim: str) -> str:
    """Parse ``n,[a=authzid],^Aauth=Bearer header.payload.signature^A^A``, with ^A for the byte 1.

    The signature is not verified here: the name counts only once the broker has accepted the same token.
    """
    header, *pairs = token.decode().split("\x01")
    if not header.startswith("n,"):
        raise ValueError("the client's message does not begin with n,")
    (authorization,) = [value for key, _, value in (pair.partition("=") for pair in pairs) if key == "auth"]
    scheme, _, bearer = authorization.partition(" ")
    payload = bearer.strip().split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    name = claims[claim] if isinstance(claims, dict) else None
    if scheme.lower() != "bearer" or not isinstance(name, str) or not name:
        raise ValueError(f"the token has no claim {claim!r} with a name")
    return name


def _scram_name(token: bytes) -> str:
    """Parse ``n,[a=authzid],n=name,r=nonce[,extensions]``; the name's own commas and equal signs are escaped."""
    _binding, _authzid, name, *rest = token.decode().split(",")
    if not name.startswith("n="):
        raise ValueError("the client's first message has no user name")
    if "tokenauth=true" in rest:
        raise ValueError("delegation tokens are not supported: only the broker knows their owner")
    return name.removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
