"""Checks each request of a connection, and routes it to the broker, to a handler or to the gateway's own answer."""

import logging
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import Entity

from streaming.gateway.proxy.addresses import rewrite_coordinators, rewrite_leaders
from streaming.gateway.proxy.admission.request_memory import ConnectionMemory
from streaming.gateway.proxy.api_versions import unsupported_version
from streaming.gateway.proxy.broker_link import BrokerLink, ClientSide
from streaming.gateway.proxy.find_coordinator import find_coordinators, is_for_transactions
from streaming.gateway.proxy.handler_calls import HandlerCalls
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.proxy.response_queue import ResponseQueue
from streaming.gateway.proxy.sasl_relay import SaslRelay
from streaming.gateway.security.internal_topics.guard import TopicGuard, VerdictKind
from streaming.gateway.security.internal_topics.refusals import PartialRefusal
from streaming.gateway.security.sasl_exchange import ANONYMOUS, MECHANISMS, REFUSED_MECHANISM
from streaming.gateway.wire.api_keys import (
    API_VERSIONS,
    FIND_COORDINATOR,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    api_name,
)
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.codec import (
    LARGE_REQUEST_BYTES,
    decode_request,
    decode_request_in_steps,
    decode_response_in_steps,
    encode_response,
    encode_response_in_steps,
)
from streaming.gateway.wire.error_names import error_name
from streaming.gateway.wire.frames import (
    LENGTH_SIZE,
    ByteBuffer,
    FrameRefused,
    RefusalReason,
    RequestHead,
    parse_acks,
    parse_request_head,
)
from streaming.gateway.wire.steps import Steps, run_steps

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_ACKS = 0
"""The ``acks`` of a producer that expects no response."""

DECODED_REQUESTS = frozenset({API_VERSIONS, FIND_COORDINATOR, SASL_HANDSHAKE, SASL_AUTHENTICATE})
"""APIs whose requests the router decodes, in addition to those that have a handler."""

BEFORE_AUTHENTICATION = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})


class Admission(Enum):
    """Whether the next request was accepted."""

    ACCEPTED = auto()
    INCOMPLETE = auto()
    """More of its bytes must arrive first."""
    BLOCKED = auto()
    """It must wait for the broker's connection, for an earlier request's handler, for the names of its topics, or for
    memory."""


class RequestRouter:
    """Routes the requests of one connection, in their order."""

    def __init__(
        self, client: ClientSide, context: ListenerContext, responses: ResponseQueue, link: BrokerLink
    ) -> None:
        self._client = client
        self._context = context
        self._responses = responses
        self._link = link
        self._handlers = HandlerCalls(client, context, responses, link)
        self._guard = TopicGuard(
            context.internal_topics, context.options.limits, context.loop_share, client.process_received, self._fail
        )
        self._sasl = SaslRelay(link, context.options.requires_sasl, context.options.oauth_principal_claim)
        self._memory = ConnectionMemory(context.request_memory, client.process_received)
        self._collecting_bytes = 0
        self._start_decoded: Callable[[], bool] | None = None
        self.decoding_bytes = 0
        """Bytes of the request that is being decoded, or that is decoded and must wait."""
        self._refusal: FrameRefused | None = None
        self._concerns_handler: bool | None = None
        """Whether the request at the front of the buffer is a handler's; None while that is not known."""
        self._is_finding = False
        self._unfinished: set[Steps[Any]] = set()

    @property
    def principal(self) -> str:
        """The client's principal, in Kafka's form ``User:alice``."""
        return self._sasl.principal or ANONYMOUS

    @property
    def has_authenticated(self) -> bool:
        """Whether the client has ever authenticated, or need not; its session may have expired since."""
        return self._sasl.has_authenticated

    @property
    def is_blocked(self) -> bool:
        """Whether the next request must wait: for the broker's part of the authentication, or for its decoding."""
        return self._sasl.awaits_broker or (self.decoding_bytes > 0 and not self.has_decoded_request)

    @property
    def has_decoded_request(self) -> bool:
        """Whether a request was decoded, or found to be undecodable, and is to be routed next."""
        return self._start_decoded is not None or self._refusal is not None

    def settle_memory(self) -> None:
        """Count the memory of the connection: of the request that arrives, of those without a response, and of what the
        client and the broker have yet to read.
        """
        requests = self._collecting_bytes + self.decoding_bytes + self._responses.buffered_bytes
        self._memory.settle(requests + self._client.unsent_bytes + self._link.buffered_bytes)
        self._handlers.relieve()

    def may_collect_response(self, size: int) -> bool:
        """See :class:`ClientSide`. One that complete responses wait for has memory in any case: they leave after it."""
        self.settle_memory()
        return self._responses.delayed_bytes > 0 or self._memory.reserve(size)

    def cancel(self) -> None:
        """Cancel the requests in handlers, those that wait for their topics' names, and those answered in steps.

        Their memory is released.
        """
        self._memory.close()
        self._handlers.cancel()
        self._guard.close()
        for steps in tuple(self._unfinished):
            steps.close()

    def admit_next(self, received: ByteBuffer) -> Admission:
        """Start the request at the front of the buffer.

        A request that is passed on stays in the buffer, for :meth:`BrokerLink.pass_on`; any other is removed once it
        is whole. Raises :class:`FrameRefused`.
        """
        if self.has_decoded_request:
            return self._route_decoded()
        head = parse_request_head(received, self._context.options.limits.max_frame_bytes)
        if head is None:
            return Admission.INCOMPLETE
        is_offered = self._check(head)
        served = self._context.served.get(head.api_key)
        if head.api_key not in DECODED_REQUESTS and served is None:
            return self._pass(head, received)
        size = LENGTH_SIZE + head.length
        if not self._may_collect(size):
            return Admission.BLOCKED
        if len(received) < size:
            return Admission.INCOMPLETE
        if served is not None and served.concerns is not None:
            if self._concerns_handler is None:
                self._find_concern(head, received.peek(size), served.concerns)
            if self._concerns_handler is None:
                return Admission.BLOCKED
            if not self._concerns_handler:
                return self._pass(head, received)
        frame = received.read(size)
        self._request_left()
        if not is_offered:
            self._answer(head, unsupported_version(self._context.ranges[API_VERSIONS]))
            return Admission.ACCEPTED
        self._decode(head, frame)
        return self._route_decoded() if self.has_decoded_request else Admission.BLOCKED

    def _check(self, head: RequestHead) -> bool:
        """Return whether the version is offered; only ApiVersions has a response for one that is not.

        Raises :class:`FrameRefused` for any other request that is not offered, not authenticated, or too large.
        """
        request = f"{api_name(head.api_key)} v{head.version}"
        try:
            offered = self._context.ranges[head.api_key]
        except KeyError:
            raise FrameRefused(RefusalReason.UNKNOWN_API, request) from None
        is_offered = head.version in offered
        if not is_offered and head.api_key != API_VERSIONS:
            raise FrameRefused(RefusalReason.UNSUPPORTED_VERSION, request)
        limits = self._context.options.limits
        is_before = head.api_key in BEFORE_AUTHENTICATION
        if not is_before and self._sasl.principal is None:
            raise FrameRefused(RefusalReason.NOT_AUTHENTICATED, request)
        limit = limits.max_unauthenticated_bytes if is_before else limits.max_request_bytes
        if head.api_key != PRODUCE and head.length > limit:
            raise FrameRefused(RefusalReason.REQUEST_TOO_LARGE, f"{api_name(head.api_key)} of {head.length} bytes")
        return is_offered

    def _may_collect(self, size: int) -> bool:
        """Whether there is memory for the whole request at the front of the buffer; if not, it must wait."""
        if not self._collecting_bytes:
            self.settle_memory()
            if not self._memory.reserve(size):
                return False
            self._collecting_bytes = size
        return True

    def _pass(self, head: RequestHead, received: ByteBuffer) -> Admission:
        """Start passing a request on to the broker undecoded, unless it names topics that are not for clients."""
        verdict = self._guard.check(head, received, self.principal)
        if verdict.refusal is not None:
            return self._refuse_topics(head, received, verdict.refusal, verdict.rest)
        if verdict.kind is VerdictKind.REPLACE:
            assert verdict.rest is not None
            if not self._link.send_in_place(head, verdict.rest, verdict.edit):
                return Admission.BLOCKED
            received.read(LENGTH_SIZE + head.length)
            self._request_left()
            return Admission.ACCEPTED
        if verdict.kind is not VerdictKind.PASS:
            if not self._may_collect(min(LENGTH_SIZE + head.length, self._context.options.limits.max_request_bytes)):
                return Admission.BLOCKED
            return Admission.INCOMPLETE if verdict.kind is VerdictKind.INCOMPLETE else Admission.BLOCKED
        expects_response = True
        if head.api_key == PRODUCE:
            acks = parse_acks(received, head)
            if acks is None:
                return Admission.INCOMPLETE
            expects_response = acks != NO_ACKS
        if not self._link.start_passing(head, expects_response=expects_response, scan=verdict.scan, edit=verdict.edit):
            return Admission.BLOCKED
        self._request_left()
        return Admission.ACCEPTED

    def _refuse_topics(
        self, head: RequestHead, received: ByteBuffer, refusal: PartialRefusal, rest: bytes | None
    ) -> Admission:
        """Answer for the refused topics, and let the broker answer for the others."""
        if rest is None:
            self._answer(head, refusal.answer)
        else:

            def merge(frame: bytes) -> Steps[bytes]:
                if head.api_key == PRODUCE:
                    rewritten = rewrite_leaders(frame, head.version, self._context.advertise)
                    frame = rewritten if isinstance(rewritten, bytes) else (yield from rewritten)
                response = yield from decode_response_in_steps(frame, head.api_key, head.version)
                return (yield from encode_response_in_steps(refusal.merge(response), head.correlation_id))

            if not self._link.send_request(head, rest, merge):
                return Admission.BLOCKED
        received.read(LENGTH_SIZE + head.length)
        self._request_left()
        return Admission.ACCEPTED

    def _request_left(self) -> None:
        """The request at the front has left the buffer, or begins to leave it."""
        self._guard.request_left()
        self._collecting_bytes = 0
        self._concerns_handler = None

    def _find_concern(self, head: RequestHead, frame: bytes, concerns: Callable[[Any], bool]) -> None:
        """Find out whether a request is the handler's: at once if it is small, later otherwise."""
        if self._is_finding:
            return

        def found(is_concerned: bool) -> None:
            self._concerns_handler, self._is_finding = is_concerned, False

        def failed(failure: Exception) -> None:
            assert isinstance(failure, FrameRefused)
            self._refusal, self._is_finding = failure, False

        def steps() -> Steps[bool]:
            max_entries = self._context.options.limits.max_request_entries
            _, payload = yield from decode_request_in_steps(frame, head.api_key, head.version, max_entries)
            return concerns(payload)

        if len(frame) <= LARGE_REQUEST_BYTES:
            found(run_steps(steps()))
            return
        self._is_finding = True
        self._run(steps(), found, failed, self._client.process_received)

    def _fail(self, reason: str) -> None:
        log.info("closing the connection from %s: %s", self._client.host, reason)
        self._client.close()

    def _decode(self, head: RequestHead, frame: bytes) -> None:
        """Decode a request: a small one at once, a large one in steps, with which it becomes decoded later."""
        self.decoding_bytes = len(frame)
        served = self._context.served.get(head.api_key)
        message_type = None if served is None else served.message_type
        if len(frame) <= LARGE_REQUEST_BYTES:
            client_id, payload = decode_request(frame, head.api_key, head.version, message_type)
            self._start_decoded = partial(self._route, head, client_id, payload, frame)
            return

        def finished(decoded: tuple[str, Any]) -> None:
            self._start_decoded = partial(self._route, head, *decoded, frame)

        def failed(failure: Exception) -> None:
            assert isinstance(failure, FrameRefused)
            self._refusal = failure

        max_entries = self._context.options.limits.max_request_entries
        if served is not None and served.max_entries is not None:
            max_entries = min(max_entries, served.max_entries)
        steps = decode_request_in_steps(frame, head.api_key, head.version, max_entries, message_type)
        self._run(steps, finished, failed, self._client.process_received)

    def _route_decoded(self) -> Admission:
        if self._refusal is not None:
            raise self._refusal
        assert self._start_decoded is not None
        if not self._start_decoded():
            return Admission.BLOCKED
        self._start_decoded, self.decoding_bytes = None, 0
        return Admission.ACCEPTED

    def _route(self, head: RequestHead, client_id: str, payload: Any, frame: bytes) -> bool:
        """Start a decoded request; return False if it must wait."""
        if head.api_key == API_VERSIONS:
            self._answer(head, self._context.ranges.api_versions_response(payload))
        elif head.api_key == FIND_COORDINATOR:
            if is_for_transactions(payload):
                rewrite = partial(rewrite_coordinators, version=head.version, advertise=self._context.advertise)
                return self._link.send_request(head, frame, rewrite)
            find = partial(find_coordinators, self._context.coordinator_of, self._context.loop_share)
            self._handlers.start(head, self._request(head, client_id, payload), find)
        elif head.api_key == SASL_HANDSHAKE:
            if self._sasl.supports(payload):
                return self._sasl.relay_handshake(head, frame)
            mechanism: str = payload.mechanism
            log.info("refusing SASL mechanism %.40r of %s: %s", mechanism, self._client.host, REFUSED_MECHANISM)
            unsupported = ErrorCode.unsupported_sasl_mechanism
            self._answer(head, SaslHandshakeResponse(error_code=unsupported, mechanisms=MECHANISMS))
            self._client.close()
        elif head.api_key == SASL_AUTHENTICATE:
            return self._sasl.relay_token(head, payload, frame)
        else:
            self._handlers.start(head, self._request(head, client_id, payload))
        return True

    def _request(self, head: RequestHead, client_id: str, payload: Any) -> ClientRequest:
        caller = Caller(client_id, self._client.host, self.principal)
        return ClientRequest(caller, self._context.node_id, head.api_key, head.version, payload)

    def _run(
        self,
        steps: Steps[T],
        finished: Callable[[T], None],
        failed: Callable[[Exception], None],
        proceed: Callable[[], None],
    ) -> None:
        """Run steps until the connection closes. When they end later, and not at once, call ``proceed`` after all."""
        is_later = False
        self._unfinished.add(steps)

        def settle(settled: Callable[[Any], None], result: Any) -> None:
            self._unfinished.discard(steps)
            if self._client.is_closing:
                return
            settled(result)
            if is_later:
                proceed()

        self._context.loop_share.run(
            self._client.quota_entity, steps, partial(settle, finished), partial(settle, failed)
        )
        is_later = True

    def _answer(self, head: RequestHead, response: Entity) -> None:
        self._context.metrics.count_answer(api_name(head.api_key), head.version, error_name(response))
        self._responses.complete(self._responses.append(), encode_response(response, head.correlation_id))
