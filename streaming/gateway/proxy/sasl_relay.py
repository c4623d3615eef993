"""Relays a client's SASL exchange to the real broker, and learns from it which principal the broker authenticated."""

from collections.abc import Callable

from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.gateway.proxy.broker_link import BrokerLink
from streaming.gateway.security.sasl_exchange import ANONYMOUS, SaslExchange
from streaming.gateway.wire.codec import decode_response
from streaming.gateway.wire.frames import RequestHead


class SaslRelay:
    """The SASL state of one connection.

    ``awaits_broker`` is set while the broker has yet to answer: the principal of the next request depends on it.
    ``oauth_principal_claim`` is the claim of OAUTHBEARER tokens that is the user's name.
    ``has_authenticated`` is set from the first authentication on, and from the start where SASL is not required.
    """

    def __init__(self, link: BrokerLink, is_required: bool, oauth_principal_claim: str) -> None:
        self.awaits_broker = False
        self.has_authenticated = not is_required
        self._link = link
        self._is_required = is_required
        self._exchange = SaslExchange(oauth_principal_claim)

    @property
    def principal(self) -> str | None:
        """The client's principal; None if it must authenticate first."""
        return self._exchange.principal if self._is_required else ANONYMOUS

    def supports(self, handshake: RequestPayload) -> bool:
        """Start an exchange with a SaslHandshake request; return whether its mechanism can be relayed."""
        return self._exchange.start(handshake)

    def relay_handshake(self, head: RequestHead, frame: bytes) -> bool:
        """Send a SaslHandshake request to the broker; return False if it must wait."""
        return self._relay(head, frame, lambda _response: None)

    def relay_token(self, head: RequestHead, payload: RequestPayload, frame: bytes) -> bool:
        """Send a SaslAuthenticate request to the broker; return False if it must wait. Raises :class:`FrameRefused`."""
        self._exchange.read_token(payload)
        return self._relay(head, frame, self._exchange.read_response)

    def _relay(self, head: RequestHead, frame: bytes, observe: Callable[[ResponsePayload], None]) -> bool:
        def transform(response: bytes) -> bytes:
            observe(decode_response(response, head.api_key, head.version))
            self.awaits_broker = False
            self.has_authenticated = self.has_authenticated or self.principal is not None
            return response

        self.awaits_broker = self._link.send_request(head, frame, transform)
        return self.awaits_broker
