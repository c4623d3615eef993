"""One client's connection: its requests in order, each to the broker or to a handler, the answers in the same order.

What goes through is not decoded and never kept whole: bytes are handed on as they come, and where one side does not
take them, the other is not read. Two rules keep the answers in order without storing them:

* A request is passed to the broker only when no earlier one waits for a handler; so what comes from the broker can
  always go to the client at once. (A broker takes the requests of a connection one after the other anyway.)
* Requests for handlers are started in the order in which they came, without waiting for each other: a commit need not
  wait until a parked JoinGroup is answered. Their answers wait for their turn.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextvars import copy_context
from enum import Enum, auto
from functools import partial
from typing import cast

from kio.schema.errors import ErrorCode
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from streaming.gateway.addresses import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    rewrite_addresses,
)
from streaming.gateway.answers import Answers, Slot
from streaming.gateway.api_versions import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    unsupported_version,
)
from streaming.gateway.codec import (
    MALFORMED,
    api_name,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from streaming.gateway.entities import error_of
from streaming.gateway.find_coordinator import answer_for_groups, asks_for_transactions
from streaming.gateway.frames import (
    LENGTH_SIZE,
    PRODUCE,
    ByteBuffer,
    FrameRefused,
    Refusal,
    RequestHead,
    peek_acks,
    peek_request_head,
)
from streaming.gateway.request import Caller, ClientRequest
from streaming.gateway.sasl import ANONYMOUS, MECHANISMS, SaslExchange
from streaming.gateway.surroundings import Surroundings
from streaming.gateway.upstream import Expected, Upstream, UpstreamLost, current_forward

__all__ = ["ClientConnection"]

log = logging.getLogger(__name__)

UNREAD = "unread"
"""Told as the error of an answer that was passed on: nobody looked."""

UNANSWERED = "unanswered"
"""Told as the error of a Produce request with acks 0."""

UNACKNOWLEDGED = 0
"""The ``acks`` of a producer that wants no answer."""

READ_WHOLE = frozenset({API_VERSIONS, FIND_COORDINATOR, SASL_HANDSHAKE, SASL_AUTHENTICATE})
"""APIs whose requests are read here, in addition to those that have a handler."""

BEFORE_AUTHENTICATION = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})

READ_AHEAD_BYTES = 16 * 1024

OWN_CORRELATION_ID = 0
"""Of requests that a handler has sent over the client's connection to the broker; they are told apart by order."""


class ClientConnection(asyncio.Protocol):
    """See the module's description."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._limits = surroundings.limits
        self._transport: asyncio.Transport
        self._host = ""
        self._unread = ByteBuffer()
        self._answers = Answers(self._write)
        self._passing = 0
        self._upstream: Upstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._forwards: set[asyncio.Future[bytes]] = set()
        self._sasl = SaslExchange()
        self._awaits_sasl = False
        self._upstream_is_gone = False
        self._client_is_slow = False
        self._is_draining = False
        self._has_said_all = False
        self._is_closing = False
        self._last_active = time.monotonic()

    # ---- the client's side ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it in every loop: uvloop's are of their own kind.
        self._transport = cast("asyncio.Transport", transport)
        if not self._around.opened(self):
            self._is_closing = True
            self._transport.abort()
            return
        peer = transport.get_extra_info("peername")
        self._host = peer[0] if peer else ""
        self._transport.set_write_buffer_limits(self._limits.connection_buffer_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._around.closed(self)
        for task in (*self._tasks, *filter(None, [self._connecting])):
            task.cancel()
        self._fail_forwards("the client has gone")
        if self._upstream is not None:
            # In order: what a producer sent with acks 0 before it went is still on its way.
            self._upstream.close()

    def eof_received(self) -> bool:
        """The client will send no more. What is here already goes to the broker first: nobody would send it again."""
        self._has_said_all = True
        # TLS has no half of a connection that could stay open.
        is_secured = self._transport.get_extra_info("sslcontext") is not None
        return self._broker_is_awaited and len(self._unread) > 0 and not is_secured

    def pause_writing(self) -> None:
        self._client_is_slow = True
        if self._upstream is not None:
            self._upstream.read(False)

    def resume_writing(self) -> None:
        self._client_is_slow = False
        if self._upstream is not None:
            self._upstream.read(True)
        self._read()

    def data_received(self, data: bytes) -> None:
        self._last_active = time.monotonic()
        if len(data) <= self._passing and not len(self._unread) and not self._is_held:
            # Most of the bytes of a large request come this way, and are not copied.
            self._pass(data)
            return
        self._unread.feed(data)
        self._read()

    def close(self) -> None:
        """Close the connection when what is written has gone out; what is in flight gets no answer."""
        if not self._is_closing:
            self._is_closing = True
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        self._transport.abort()

    def drain(self) -> None:
        """Take no further request; close when those in flight are answered."""
        self._is_draining = True
        self._read()

    @property
    def buffered_bytes(self) -> int:
        """Bytes that wait here, in either direction, for somebody to take them."""
        from_broker = self._transport.get_write_buffer_size() + self._answers.size
        from_client = len(self._unread)
        if self._upstream is not None:
            from_client += self._upstream.buffered_bytes
        return from_broker + from_client

    def is_idle_since(self, moment: float) -> bool:
        """Whether nothing went in or out since then (monotonic seconds), and no handler is at work."""
        return self._last_active < moment and not self._answers.await_handler

    def _write(self, data: bytes) -> None:
        self._last_active = time.monotonic()
        if not self._is_closing:
            self._transport.write(data)

    def _refuse(self, refused: FrameRefused) -> None:
        self._around.metrics.count_refusal(refused.reason)
        log.info("connection from %s closed: %s", self._host, refused)
        self.close()

    # ---- reading requests ----------------------------------------------------------------------------------------

    @property
    def _is_held(self) -> bool:
        """Whether nothing of the client's can be handed on just now."""
        return self._is_closing or self._client_is_slow or self._awaits_sasl or self._broker_is_awaited

    @property
    def _broker_is_awaited(self) -> bool:
        """Whether bytes for the broker have to wait, for the connection or for room in it."""
        return self._connecting is not None or (self._upstream is not None and self._upstream.is_full)

    @property
    def _is_full(self) -> bool:
        """Whether no further request can be taken just now."""
        return (
            self._is_draining
            or len(self._answers) >= self._limits.max_in_flight
            or self._answers.size >= self._limits.max_request_bytes
        )

    def _read(self) -> None:
        """Hand on what has arrived, as far as possible, and let more come in, or not."""
        wants_more = False
        try:
            while not (wants_more or self._is_held):
                if self._passing and len(self._unread):
                    self._pass(self._unread.take(self._passing))
                elif self._passing:
                    wants_more = True
                elif self._is_full:
                    break
                else:
                    step = self._take_request() if len(self._unread) else _Step.NEEDS_BYTES
                    wants_more = step is _Step.NEEDS_BYTES
                    if step is _Step.HAS_TO_WAIT:
                        break
        except FrameRefused as refused:
            self._refuse(refused)
        is_through = self._is_draining and not self._passing and not self._answers
        if is_through or (self._has_said_all and not self._broker_is_awaited):
            self.close()
        # A little is read ahead in any case: only who reads learns that the client has gone.
        self._let_in(wants_more or len(self._unread) < READ_AHEAD_BYTES)

    def _let_in(self, wanted: bool) -> None:
        if wanted != self._transport.is_reading() and not self._transport.is_closing():
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _take_request(self) -> "_Step":
        """Begin with the request whose first bytes are here. Raises :class:`FrameRefused`."""
        head = peek_request_head(self._unread, self._limits.max_frame_bytes)
        if head is None:
            return _Step.NEEDS_BYTES
        known = self._check(head)
        if head.api_key != PRODUCE and head.length > self._limits.max_request_bytes:
            raise FrameRefused(Refusal.REQUEST_TOO_LARGE, f"{api_name(head.api_key)} of {head.length} bytes")
        if head.api_key not in READ_WHOLE and head.api_key not in self._around.served:
            return self._begin_to_pass(head)
        size = LENGTH_SIZE + head.length
        if len(self._unread) < size:
            return _Step.NEEDS_BYTES
        if not known:
            self._unread.take(size)
            offered = self._around.ranges[API_VERSIONS]
            self._answer_at_once(head, unsupported_version(offered))
            return _Step.TAKEN
        frame = self._unread.peek(size)
        client_id, payload = decode_request(frame, head.api_key, head.version)
        if not self._take_whole(head, client_id, payload, frame):
            return _Step.HAS_TO_WAIT
        self._unread.take(size)
        return _Step.TAKEN

    def _check(self, head: RequestHead) -> bool:
        """Whether its version is one that is offered; if not, only ApiVersions has an answer to that."""
        what = f"{api_name(head.api_key)} v{head.version}"
        try:
            offered = self._around.ranges[head.api_key]
        except KeyError:
            raise FrameRefused(Refusal.UNKNOWN_API, what) from None
        if head.version not in offered:
            if head.api_key == API_VERSIONS:
                return False
            raise FrameRefused(Refusal.UNSUPPORTED_VERSION, what)
        if self._principal is None and head.api_key not in BEFORE_AUTHENTICATION:
            raise FrameRefused(Refusal.NOT_AUTHENTICATED, what)
        return True

    @property
    def _principal(self) -> str | None:
        return self._sasl.principal if self._around.requires_sasl else ANONYMOUS

    def _take_whole(self, head: RequestHead, client_id: str, payload: RequestPayload, frame: bytes) -> bool:
        """Begin with a request that was read; False when it cannot be begun yet."""
        if head.api_key == API_VERSIONS:
            self._answer_at_once(head, self._around.ranges.answer(payload))
        elif head.api_key == FIND_COORDINATOR:
            if asks_for_transactions(payload):
                return self._pass_whole(head, frame, self._rewritten(head))
            self._answer_at_once(head, answer_for_groups(payload, self._around.coordinator_of))
        elif head.api_key == SASL_HANDSHAKE:
            return self._begin_sasl(head, payload, frame)
        elif head.api_key == SASL_AUTHENTICATE:
            return self._continue_sasl(head, payload, frame)
        else:
            self._start_handler(head, client_id, payload)
        return True

    # ---- requests that are answered here -------------------------------------------------------------------------

    def _answer_at_once(self, head: RequestHead, answer: Entity) -> None:
        self._around.metrics.count_answer(api_name(head.api_key), head.version, error_of(answer))
        self._answers.give(self._answers.owe(), encode_response(answer, head.correlation_id))

    def _start_handler(self, head: RequestHead, client_id: str, payload: RequestPayload) -> None:
        caller = Caller(client_id, self._host, self._principal or ANONYMOUS)
        request = ClientRequest(caller, self._around.node_id, head.api_key, head.version, payload)
        context = copy_context()
        context.run(current_forward.set, partial(self._forward, client_id))
        slot = self._answers.owe(head.length)
        task = asyncio.get_running_loop().create_task(self._handle(head, request, slot), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, head: RequestHead, request: ClientRequest, slot: Slot) -> None:
        started = time.monotonic()
        name = api_name(head.api_key)
        try:
            answer = await self._around.served[head.api_key].handle(request)
            frame = encode_response(answer, head.correlation_id)
        except Exception:
            log.exception("%s v%s of %s closed its connection", name, head.version, request.caller)
            self._around.metrics.count_failed_handler(name)
            self.close()
            return
        self._around.metrics.count_answer(name, head.version, error_of(answer))
        self._around.metrics.time_handler(name, time.monotonic() - started)
        self._answers.give(slot, frame)
        self._go_on()

    # ---- requests that the broker answers ------------------------------------------------------------------------

    def _begin_to_pass(self, head: RequestHead) -> "_Step":
        """Begin to hand a request on as it comes; its answer likewise, or rewritten."""
        acks = None
        if head.api_key == PRODUCE:
            acks = peek_acks(self._unread, head)
            if acks is None:
                return _Step.NEEDS_BYTES
        upstream = self._ready_upstream()
        if upstream is None:
            return _Step.HAS_TO_WAIT
        if acks == UNACKNOWLEDGED:
            self._around.metrics.count_answer(api_name(head.api_key), head.version, UNANSWERED)
        elif head.api_key in (METADATA, DESCRIBE_CLUSTER):
            self._expect_whole(upstream, head, self._rewritten(head))
        else:
            slot = self._answers.owe(is_from_broker=True)
            upstream.expect(Expected(*head[1:], time.monotonic(), stream=partial(self._stream, slot)))
        self._passing = LENGTH_SIZE + head.length
        return _Step.TAKEN

    def _pass(self, piece: bytes) -> None:
        assert self._upstream is not None
        self._passing -= len(piece)
        self._upstream.send(piece)

    def _stream(self, slot: Slot, piece: bytes, is_last: bool) -> None:
        self._answers.stream(slot, piece, is_last)
        if is_last:
            self._go_on()

    def _go_on(self) -> None:
        """An answer has gone: there may be room for what waits."""
        if self._is_draining or len(self._unread):
            self._read()

    def _pass_whole(self, head: RequestHead, frame: bytes, rewrite: Callable[[bytes], bytes]) -> bool:
        upstream = self._ready_upstream()
        if upstream is None:
            return False
        self._expect_whole(upstream, head, rewrite)
        upstream.send(frame)
        return True

    def _expect_whole(self, upstream: Upstream, head: RequestHead, rewrite: Callable[[bytes], bytes]) -> None:
        slot = self._answers.owe(is_from_broker=True)

        def collect(frame: bytes) -> None:
            try:
                answer = rewrite(frame)
            except MALFORMED as failure:
                self._fail(f"the answer to {api_name(head.api_key)} v{head.version} cannot be read: {failure!r}")
                return
            self._answers.give(slot, answer)
            self._go_on()

        upstream.expect(Expected(*head[1:], time.monotonic(), collect=collect))

    def _rewritten(self, head: RequestHead) -> Callable[[bytes], bytes]:
        return lambda frame: rewrite_addresses(frame, head.api_key, head.version, self._around.show)

    def _begin_sasl(self, head: RequestHead, payload: RequestPayload, frame: bytes) -> bool:
        if not self._sasl.begin(payload):
            refusal = SaslHandshakeResponse(error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=MECHANISMS)
            self._answer_at_once(head, refusal)
            self.close()
            return True
        return self._pass_sasl(head, frame, lambda _answer: None)

    def _continue_sasl(self, head: RequestHead, payload: RequestPayload, frame: bytes) -> bool:
        self._sasl.send(payload)
        return self._pass_sasl(head, frame, self._sasl.answered)

    def _pass_sasl(self, head: RequestHead, frame: bytes, overhear: Callable[[ResponsePayload], None]) -> bool:
        """Nothing more is taken until it is answered: who asks next depends on it."""

        def answered(answer: bytes) -> bytes:
            overhear(decode_response(answer, head.api_key, head.version))
            self._awaits_sasl = False
            return answer

        self._awaits_sasl = self._pass_whole(head, frame, answered)
        return self._awaits_sasl

    async def _forward(self, client_id: str, payload: RequestPayload) -> ResponsePayload:
        """Ask the broker what a handler wants to know; see :func:`streaming.gateway.upstream.forward_upstream`."""
        while self._upstream is None:
            self._connect()
            if self._is_closing or self._connecting is None:
                raise UpstreamLost("the connection is being closed")
            await asyncio.wait([self._connecting])
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._forwards.add(future)
        future.add_done_callback(self._forwards.discard)

        def collect(frame: bytes) -> None:
            if not future.done():
                future.set_result(frame)

        key, version = payload.__api_key__, payload.__version__
        self._upstream.expect(Expected(key, version, OWN_CORRELATION_ID, time.monotonic(), collect=collect))
        self._upstream.send(encode_request(payload, OWN_CORRELATION_ID, client_id))
        return decode_response(await future, key, version)

    # ---- the broker's side ---------------------------------------------------------------------------------------

    def _ready_upstream(self) -> Upstream | None:
        """The connection to the broker; None when the request has to wait, for it or for a handler."""
        if self._answers.await_handler:
            return None
        if self._upstream is None:
            self._connect()
        return self._upstream

    def _connect(self) -> None:
        if self._upstream_is_gone:
            # What the broker has authenticated went with it.
            self.close()
        elif self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._open_upstream())

    async def _open_upstream(self) -> None:
        try:
            limits = self._limits
            self._upstream = await self._around.connect(
                lambda: Upstream(self, limits.connection_buffer_bytes, limits.max_frame_bytes)
            )
            self._upstream.read(not self._client_is_slow)
        except OSError as failure:
            self._fail(f"broker {self._around.node_id} cannot be reached: {failure}")
        finally:
            self._connecting = None
        self._read()

    def upstream_answers(self, expected: Expected, seconds: float) -> None:
        """See :class:`streaming.gateway.upstream.UpstreamUser`."""
        name = api_name(expected.api_key)
        self._around.metrics.count_answer(name, expected.version, UNREAD)
        self._around.metrics.time_upstream(name, seconds)

    def upstream_lost(self, why: str) -> None:
        """The client is told by the end of its connection, unless the broker owed it nothing.

        Brokers end connections that were idle for long; a group's member asks nothing of them for hours.
        """
        upstream, self._upstream = self._upstream, None
        if self._is_closing or upstream is None:
            return
        self._upstream_is_gone = self._around.requires_sasl
        upstream.abort()
        if upstream.owes or self._passing:
            self._fail(why)

    def _fail(self, why: str) -> None:
        """Give up, since the broker's side failed."""
        self._around.metrics.count_lost_upstream()
        log.info("connection from %s closed: %s", self._host, why)
        self._fail_forwards(why)
        self.close()

    def upstream_writable(self) -> None:
        """See :class:`streaming.gateway.upstream.UpstreamUser`."""
        self._read()

    def _fail_forwards(self, why: str) -> None:
        for future in tuple(self._forwards):
            if not future.done():
                future.set_exception(UpstreamLost(why))


class _Step(Enum):
    """What became of the request at the front."""

    TAKEN = auto()
    NEEDS_BYTES = auto()
    HAS_TO_WAIT = auto()
