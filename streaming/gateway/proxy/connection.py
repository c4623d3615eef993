"""A client's connection: reads its requests, routes each to the broker or to a handler, and answers in their order.

Most traffic is passed on undecoded and in pieces: bytes leave as they arrive, and a slow receiver pauses reading from
its sender. Two rules keep responses in order without storing them:

* A request is passed to the broker only when no earlier one waits for a handler. So bytes from the broker can always
  be written to the client at once. (A broker handles the requests of a connection one at a time anyway.)
* Handlers start in the order of their requests and run concurrently: a commit does not wait for a parked JoinGroup.
  Their responses wait in the :class:`ResponseQueue`.

This module has the client's side: its transport, flow control and when to close. :mod:`.request_router` decides who
answers a request; :mod:`.broker_link` and :mod:`.handler_calls` obtain the response.
"""

import asyncio
import logging
import time
from typing import cast

from streaming.gateway.proxy.admission.delivery import Delivery
from streaming.gateway.proxy.broker_link import BrokerLink
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.proxy.request_router import Admission, RequestRouter
from streaming.gateway.proxy.response_queue import ResponseQueue
from streaming.gateway.wire.client_request import QuotaEntity
from streaming.gateway.wire.frames import ByteBuffer, FrameRefused, RefusalReason
from streaming.gateway.wire.loop_share import SLICE_SECONDS

log = logging.getLogger(__name__)

READ_AHEAD_BYTES = 16 * 1024


class ClientConnection(asyncio.Protocol):
    """One client's connection to a listener, from the IP address ``host``. See the module's description."""

    def __init__(self, context: ListenerContext, host: str) -> None:
        self.host = host
        self.is_closing = False
        self._context = context
        self._limits = context.options.limits
        self._transport: asyncio.Transport
        self._received = ByteBuffer()
        self._responses = ResponseQueue(self._write)
        self._link = BrokerLink(self, context, self._responses)
        self._router = RequestRouter(self, context, self._responses, self._link)
        self._client_is_slow = False
        self._client_sent_eof = False
        self._is_draining = False
        self._awaits_slice = False
        self._connected_at = time.monotonic()
        self._last_active = self._connected_at
        self._incomplete_since: float | None = None
        self._delivery = Delivery()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance check: uvloop's transports do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._context.register(self)
        self._transport.set_write_buffer_limits(self._limits.connection_buffer_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        self._context.unregister(self)
        self._router.cancel()
        self._link.close("the client disconnected")

    def eof_received(self) -> bool:
        """Keep the connection open for received requests that still wait for the broker, if the transport allows it.

        A producer with acks 0 would not send them again.
        """
        self._client_sent_eof = True
        # TLS connections cannot be half-closed.
        is_tls = self._transport.get_extra_info("sslcontext") is not None
        return self._link.is_blocked and len(self._received) > 0 and not is_tls

    def pause_writing(self) -> None:
        self._client_is_slow = True
        self._link.set_reading(False)
        self._router.settle_memory()

    def resume_writing(self) -> None:
        self._client_is_slow = False
        self._link.set_reading(True)
        self.process_received()

    def data_received(self, data: bytes) -> None:
        if self.is_closing:
            return
        link = self._link
        if len(data) < link.passing_left and not len(self._received) and not self._is_blocked:
            # Most bytes of a large request arrive here, and are not copied.
            link.pass_on(data)
            return
        self._received.feed(data)
        if not self._router.has_authenticated and len(self._received) > self._limits.max_unauthenticated_bytes:
            detail = f"{len(self._received)} bytes, not authenticated"
            self._refuse(FrameRefused(RefusalReason.REQUEST_TOO_LARGE, detail))
            return
        self.process_received()

    def close(self) -> None:
        """Close the connection when buffered responses are written; requests in flight get no response."""
        if not self.is_closing:
            self.is_closing = True
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self.is_closing = True
        self._transport.abort()

    def drain(self) -> None:
        """Accept no further requests, and close once those in flight are answered."""
        self._is_draining = True
        if self.is_closing:
            self._transport.close()
        else:
            self.process_received()

    @property
    def quota_entity(self) -> QuotaEntity:
        """Whose share of the event loop the connection uses."""
        return QuotaEntity(self.host, self._router.principal)

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has yet to read."""
        return self._transport.get_write_buffer_size()

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are buffered in either direction."""
        to_client = self.unsent_bytes + self._responses.buffered_bytes
        return to_client + len(self._received) + self._router.decoding_bytes + self._link.buffered_bytes

    def close_stalled(self) -> None:
        """Close the connection at once, and release its memory."""
        log.info("closing the connection from %s: it reads no responses, and others wait for memory", self.host)
        self._router.cancel()
        self.abort()

    def close_if_overdue(self, now: float) -> None:
        """Abort the connection if its client did not do in time what it must; ``now`` is in monotonic seconds."""
        limits = self._limits
        metrics = self._context.metrics
        if not self._router.has_authenticated and now - self._connected_at > limits.authentication_timeout_ms / 1000:
            metrics.overdue_connections.labels("authentication").inc()
        elif self._incomplete_since and now - self._incomplete_since > limits.request_arrival_timeout_ms / 1000:
            metrics.overdue_connections.labels("request").inc()
        elif self._delivery.seconds(self.unsent_bytes, now) > limits.response_delivery_timeout_ms / 1000:
            metrics.overdue_connections.labels("delivery").inc()
        elif now - self._last_active > limits.connections_max_idle_ms / 1000 and not self._responses.awaits_handler:
            metrics.idle_connections.inc()
        else:
            return
        self.abort()

    def stalled_seconds(self, now: float) -> float:
        """For how long the client has read nothing of what it has yet to read; 0 if it owes no reading.

        ``now`` is in monotonic seconds. Call it again and again: only so is it noticed that the client reads.
        """
        return self._delivery.stalled_seconds(self.unsent_bytes, now)

    def may_collect_response(self, size: int) -> bool:
        """See :class:`streaming.gateway.proxy.broker_link.ClientSide`."""
        return not self.is_closing and self._router.may_collect_response(size)

    def response_written(self) -> None:
        """Continue with requests that waited until a response left."""
        self._last_active = time.monotonic()
        self._router.settle_memory()
        if self._is_draining or len(self._received) or self._router.has_decoded_request:
            self.process_received()

    def process_received(self) -> None:
        """Process received bytes, for a slice of the loop's time at most; pause or resume reading from the client."""
        self._link.collect_response()
        needs_bytes = False
        started = time.monotonic()
        has_accepted = False
        try:
            while not (needs_bytes or self._is_blocked):
                if self._link.passing_left and len(self._received):
                    self._link.pass_on(self._received.read(self._link.passing_left))
                elif self._link.passing_left:
                    needs_bytes = True
                elif self._is_full:
                    break
                elif has_accepted and time.monotonic() - started > SLICE_SECONDS:
                    self._awaits_slice = True
                    self._context.loop_share.defer(None, self._continue_processing)
                else:
                    admission = self._router.admit_next(self._received)
                    needs_bytes = admission is Admission.INCOMPLETE
                    if admission is Admission.BLOCKED:
                        break
                    has_accepted = has_accepted or not needs_bytes
        except FrameRefused as refused:
            self._refuse(refused)
        if has_accepted:
            self._last_active = started
        self._router.settle_memory()
        self._observe_incomplete(needs_bytes, has_accepted, started)
        is_drained = self._is_draining and not self._link.passing_left and not self._responses
        if is_drained or (self._client_sent_eof and not self._link.is_blocked):
            self.close()
        # A few bytes are read even while blocked: only a read reports that the client has disconnected.
        self._set_reading(not self.is_closing and (needs_bytes or len(self._received) < READ_AHEAD_BYTES))

    def _observe_incomplete(self, needs_bytes: bool, has_accepted: bool, now: float) -> None:
        """Remember since when the client owes bytes. While the gateway does not take them, the client owes none."""
        is_incomplete = needs_bytes and (len(self._received) > 0 or self._link.passing_left > 0)
        if not is_incomplete:
            self._incomplete_since = None
        elif has_accepted or self._incomplete_since is None:
            self._incomplete_since = now

    def _continue_processing(self) -> None:
        self._awaits_slice = False
        self.process_received()

    def _refuse(self, refused: FrameRefused) -> None:
        """Read no more, and close the connection a little later, so that a client cannot repeat it at full speed."""
        self._context.metrics.refused.labels(refused.reason).inc()
        log.info("closing the connection from %s: %s", self.host, refused)
        self._set_reading(False)
        self.is_closing = True
        asyncio.get_running_loop().call_later(self._limits.refusal_delay_ms / 1000, self._transport.close)

    @property
    def _is_blocked(self) -> bool:
        """Whether no received byte can be processed now."""
        return (
            self.is_closing
            or self._client_is_slow
            or self._awaits_slice
            or self._router.is_blocked
            or self._link.is_blocked
        )

    @property
    def _is_full(self) -> bool:
        """Whether no further request can be accepted now."""
        return (
            self._is_draining
            or len(self._responses) >= self._limits.max_in_flight
            or self._responses.buffered_bytes >= self._limits.max_request_bytes
        )

    def _set_reading(self, enabled: bool) -> None:
        if enabled != self._transport.is_reading() and not self._transport.is_closing():
            (self._transport.resume_reading if enabled else self._transport.pause_reading)()

    def _write(self, data: bytes) -> None:
        # The transport closes first when the client resets the connection, and logs a warning for each further write.
        if not (self.is_closing or self._transport.is_closing()):
            self._transport.write(data)
            self._delivery.written += len(data)
