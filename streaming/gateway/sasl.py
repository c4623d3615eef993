"""Who a client is, overheard from its SASL exchange with the real broker.

The broker authenticates; the gateway passes the tokens on and reads from them whom the broker's success is about.
PLAIN is RFC 4616, SCRAM is RFC 5802.
"""

import time
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.gateway.frames import FrameRefused, Refusal

__all__ = ["ANONYMOUS", "MECHANISMS", "SaslExchange"]

ANONYMOUS = "User:ANONYMOUS"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Those whose tokens tell a name. Of others (GSSAPI, OAUTHBEARER) the gateway could not say who was authenticated."""

SCRAM_SUCCESS = b"v="
"""What a server's last SCRAM message begins with. An answer to the first message has no error either."""


class SaslExchange:
    """One connection's exchange, or exchanges: a client may authenticate again before its session ends (KIP-368)."""

    def __init__(self) -> None:
        self._mechanism = ""
        self._name: str | None = None
        self._principal: str | None = None
        self._ends_at = float("inf")

    @property
    def principal(self) -> str | None:
        """Who the broker has authenticated, ``User:alice``; None for nobody, or when the session has ended."""
        return self._principal if time.monotonic() < self._ends_at else None

    def begin(self, request: RequestPayload) -> bool:
        """Take a SaslHandshake request; whether its mechanism is one that can be passed on."""
        handshake: Any = request
        self._mechanism = handshake.mechanism
        self._name = None
        return self._mechanism in MECHANISMS

    def send(self, request: RequestPayload) -> None:
        """Take a SaslAuthenticate request, on its way to the broker. Raises :class:`FrameRefused`."""
        token: bytes = request.auth_bytes  # type: ignore[union-attr]
        if self._name is not None:
            return
        try:
            self._name = _plain_name(token) if self._mechanism == "PLAIN" else _scram_name(token)
        except ValueError as failure:
            detail = f"{self._mechanism or 'no mechanism'}: {failure}"
            raise FrameRefused(Refusal.SASL_EXCHANGE, detail) from failure

    def answered(self, response: ResponsePayload) -> None:
        """Take the broker's answer to what was sent last."""
        answer: Any = response
        if answer.error_code is not ErrorCode.none:
            self._name = None
            return
        if self._mechanism != "PLAIN" and not answer.auth_bytes.startswith(SCRAM_SUCCESS):
            return
        lifetime = getattr(answer, "session_lifetime", timedelta(0))
        self._ends_at = time.monotonic() + lifetime.total_seconds() if lifetime else float("inf")
        self._principal, self._name = f"User:{self._name}", None


def _plain_name(token: bytes) -> str:
    """``[authzid] NUL authcid NUL passwd``; the broker refuses an authzid that is not the authcid."""
    _authzid, name, _password = token.decode().split("\0")
    return name


def _scram_name(token: bytes) -> str:
    """``n,[a=authzid],n=name,r=nonce[,extensions]``, where a name's own commas and equal signs are written as hex."""
    _binding, _authzid, name, *rest = token.decode().split(",")
    if not name.startswith("n="):
        raise ValueError("the client's first message names nobody")
    if "tokenauth=true" in rest:
        raise ValueError("the owner of a delegation token is known to the broker only")
    return name.removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
