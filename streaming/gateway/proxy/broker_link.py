"""One client's link to the real broker: its upstream connection, requests passed on, and responses passed back."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from streaming.gateway.instrumentation import NO_RESPONSE, NOT_DECODED
from streaming.gateway.proxy.addresses import FIRST_PRODUCE_VERSION_WITH_ADDRESSES, rewrite_addresses, rewrite_leaders
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.proxy.response_queue import PendingResponse, ResponseQueue
from streaming.gateway.proxy.upstream import ExpectedResponse, Upstream
from streaming.gateway.security.internal_topics.produce_scan import ProduceScan
from streaming.gateway.wire.api_keys import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    METADATA,
    PRODUCE,
    api_name,
)
from streaming.gateway.wire.client_request import QuotaEntity
from streaming.gateway.wire.codec import LARGE_REQUEST_BYTES, MALFORMED, decode_response, encode_request
from streaming.gateway.wire.forwarding import UpstreamLost
from streaming.gateway.wire.frames import LENGTH_SIZE, FrameRefused, RefusalReason, RequestHead
from streaming.gateway.wire.steps import Steps

log = logging.getLogger(__name__)

TOPIC_CHANGES = frozenset({CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS})
"""APIs with which clients change topics. With the response, the change is made."""

Transform = Callable[[bytes], bytes | Steps[bytes]]
"""Returns the frame for the client, given the broker's, at once or in steps. Raises one of MALFORMED."""

FORWARDED_CORRELATION_ID = 0
"""Of every request from a handler: responses arrive in order, so the ids need not differ."""


class ClientSide(Protocol):
    """The part of a client's connection that the objects around it use."""

    host: str
    is_closing: bool

    @property
    def quota_entity(self) -> QuotaEntity:
        """Whose share of the event loop the connection uses."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has yet to read."""

    def close(self) -> None:
        """Close the connection when buffered responses are written."""

    def may_collect_response(self, size: int) -> bool:
        """Whether there is memory for a broker's response. If not, ``process_received`` is called when there is."""

    def process_received(self) -> None:
        """Process received bytes that were blocked."""

    def response_written(self) -> None:
        """Continue with requests that waited until a response left."""


class BrokerLink:
    """Opens the upstream connection with the first request for the broker, and reopens it if it ended while unused.

    ``passing_left`` is the number of bytes that are still missing of the request that is being passed on.
    """

    def __init__(self, client: ClientSide, context: ListenerContext, responses: ResponseQueue) -> None:
        self.passing_left = 0
        self._client = client
        self._context = context
        self._responses = responses
        self._upstream: Upstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._forwards: set[asyncio.Future[bytes]] = set()
        self._is_reading = True
        self._passing_size = 0
        self._collecting_bytes = 0
        self._awaited_bytes = 0
        self._scan: ProduceScan | None = None
        self._authentication_is_lost = False

    @property
    def is_blocked(self) -> bool:
        """Whether bytes for the broker must wait, for the connection or for room in its write buffer."""
        return self._connecting is not None or (self._upstream is not None and self._upstream.is_full)

    @property
    def buffered_bytes(self) -> int:
        """Bytes that the upstream connection buffers, in either direction; a collected response counts whole."""
        return max(self._upstream.buffered_bytes, self._collecting_bytes) if self._upstream is not None else 0

    def set_reading(self, enabled: bool) -> None:
        """Resume or pause reading from the broker."""
        self._is_reading = enabled
        if self._upstream is not None:
            self._upstream.set_reading(enabled)

    def close(self, reason: str) -> None:
        """Cancel what waits for the broker, and close the connection when buffered requests are written."""
        if self._connecting is not None:
            self._connecting.cancel()
        self._fail_forwards(reason)
        if self._upstream is not None:
            self._upstream.close()

    def start_passing(
        self,
        head: RequestHead,
        *,
        expects_response: bool = True,
        scan: ProduceScan | None = None,
        edit: Transform | None = None,
    ) -> bool:
        """Start passing on a request in pieces, with :meth:`pass_on`; return False if it must wait.

        scan: finds topics in the pieces to which the client must not write.
        edit: edits the response.
        """
        upstream = self._ready_upstream()
        if upstream is None:
            return False
        if not expects_response:
            self._context.metrics.count_answer(api_name(head.api_key), head.version, NO_RESPONSE)
        elif (transform := self._transform(head, edit)) is not None:
            self._expect_frame(upstream, head, transform)
        else:
            pending = self._responses.append(is_from_broker=True)
            on_piece = partial(self._write_piece, pending)
            upstream.expect(ExpectedResponse(*head[1:], time.monotonic(), on_piece=on_piece))
        self.passing_left = self._passing_size = LENGTH_SIZE + head.length
        self._scan = scan
        return True

    def send_in_place(self, head: RequestHead, frame: bytes, edit: Transform | None) -> bool:
        """Send a whole request in place of the client's; return False if it must wait."""
        return self.send_request(head, frame, self._transform(head, edit) or (lambda response: response))

    def _transform(self, head: RequestHead, edit: Transform | None) -> Transform | None:
        """What becomes of the response to a request that is passed on; None if it is passed back as it is."""
        if head.api_key == PRODUCE and head.version >= FIRST_PRODUCE_VERSION_WITH_ADDRESSES:
            return partial(rewrite_leaders, version=head.version, advertise=self._context.advertise)
        if head.api_key == DELETE_TOPICS:
            return partial(self._note_deletions, head.version, edit)
        if head.api_key not in (METADATA, DESCRIBE_CLUSTER):
            return edit
        if edit is None:
            return partial(self._with_addresses, head)
        return lambda frame: edit(self._with_addresses(head, frame))

    def _note_deletions(self, version: int, edit: Transform | None, frame: bytes) -> bytes | Steps[bytes]:
        """The edited response to DeleteTopics; the names in it are noted if they are few enough to decode at once."""
        if len(frame) <= LARGE_REQUEST_BYTES:
            # The client understands more than the gateway, such as a new error.
            with suppress(*MALFORMED):
                response: Any = decode_response(frame, DELETE_TOPICS, version)
                deleted = [each.name for each in response.responses if each.error_code is ErrorCode.none and each.name]
                self._context.topics_changed(deleted)
        return frame if edit is None else edit(frame)

    def _with_addresses(self, head: RequestHead, frame: bytes) -> bytes:
        """The response to a request with advertised addresses in place of the brokers'."""
        context = self._context
        return rewrite_addresses(frame, head.api_key, head.version, context.advertise, context.brokers_last_named())

    def pass_on(self, piece: bytes) -> None:
        """Send the next piece of the request that is being passed on."""
        assert self._upstream is not None
        if self._scan is not None and self._is_refused(self._scan, piece):
            return
        self.passing_left -= len(piece)
        self._upstream.send(piece)

    def _is_refused(self, scan: ProduceScan, piece: bytes) -> bool:
        """Scan a piece; if the request must not reach the broker, drop both connections and return True."""
        try:
            scan.feed(piece, self._passing_size - self.passing_left)
            if scan.found:
                raise FrameRefused(RefusalReason.INTERNAL_TOPIC, "Produce, after its first topics")
        except FrameRefused as refused:
            self._context.metrics.refused.labels(refused.reason).inc()
            log.info("closing the connection from %s: %s", self._client.host, refused)
            # The broker ignores a request whose end it never gets.
            assert self._upstream is not None
            self._upstream.abort()
            self._client.close()
            return True
        return False

    def send_request(self, head: RequestHead, frame: bytes, transform: Transform) -> bool:
        """Send a whole request, and pass its response back through ``transform``; return False if it must wait."""
        upstream = self._ready_upstream()
        if upstream is None:
            return False
        self._expect_frame(upstream, head, transform)
        upstream.send(frame)
        return True

    async def forward(self, client_id: str, payload: RequestPayload) -> ResponsePayload:
        """Send a handler's own request; see :func:`streaming.gateway.wire.forwarding.forward_upstream`."""
        while self._upstream is None:
            self._connect()
            if self._client.is_closing or self._connecting is None:
                raise UpstreamLost("the client's connection is closing")
            await asyncio.wait([self._connecting])
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._forwards.add(future)
        future.add_done_callback(self._forwards.discard)

        def on_frame(frame: bytes) -> None:
            if not future.done():
                future.set_result(frame)

        key, version = payload.__api_key__, payload.__version__
        expected = ExpectedResponse(key, version, FORWARDED_CORRELATION_ID, time.monotonic(), on_frame=on_frame)
        self._upstream.expect(expected)
        self._upstream.send(encode_request(payload, FORWARDED_CORRELATION_ID, client_id))
        return decode_response(await future, key, version)

    def response_started(self, expected: ExpectedResponse, seconds: float) -> None:
        """See :class:`streaming.gateway.proxy.upstream.UpstreamOwner`."""
        name = api_name(expected.api_key)
        if expected.api_key in TOPIC_CHANGES:
            self._context.topics_changed(())
        self._context.metrics.count_answer(name, expected.version, NOT_DECODED)
        self._context.metrics.time_upstream(name, seconds)

    def upstream_lost(self, reason: str) -> None:
        """Close the client's connection, unless the broker had no request of it in flight.

        A broker closes idle connections, and a group member may send it no request for hours.
        """
        upstream, self._upstream = self._upstream, None
        self._collecting_bytes = self._awaited_bytes = 0
        if self._client.is_closing or upstream is None:
            return
        self._authentication_is_lost = self._context.options.requires_sasl
        upstream.abort()
        if upstream.has_requests_in_flight or self.passing_left:
            self._fail(reason)

    def may_collect(self, size: int) -> bool:
        """See :class:`streaming.gateway.proxy.upstream.UpstreamOwner`."""
        is_granted = self._client.may_collect_response(size)
        self._collecting_bytes, self._awaited_bytes = (size, 0) if is_granted else (0, size)
        return is_granted

    def collect_response(self) -> None:
        """Collect the response that waits for memory, if there is memory by now."""
        if self._upstream is not None and self._awaited_bytes and self.may_collect(self._awaited_bytes):
            self._upstream.collect()

    def upstream_writable(self) -> None:
        """See :class:`streaming.gateway.proxy.upstream.UpstreamOwner`."""
        self._client.process_received()

    def _ready_upstream(self) -> Upstream | None:
        """Return the upstream connection; None if the request must wait, for the connection or for a handler."""
        if self._responses.awaits_handler:
            return None
        if self._upstream is None:
            self._connect()
        return self._upstream

    def _connect(self) -> None:
        if self._authentication_is_lost:
            # Only the client can authenticate a new connection.
            self._client.close()
        elif self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        limits = self._context.options.limits
        try:
            self._upstream = await self._context.connect(
                lambda: Upstream(self, limits.connection_buffer_bytes, limits.max_frame_bytes)
            )
            self._upstream.set_reading(self._is_reading)
        except OSError as failure:
            self._fail(f"broker {self._context.node_id} cannot be reached: {failure}")
        finally:
            self._connecting = None
        self._client.process_received()

    def _expect_frame(self, upstream: Upstream, head: RequestHead, transform: Transform) -> None:
        pending = self._responses.append(is_from_broker=True)

        is_finished = False

        def finished(response: bytes) -> None:
            nonlocal is_finished
            is_finished = True
            self._collecting_bytes = 0
            self._responses.complete(pending, response)
            if upstream.is_held:
                upstream.release()
            self._client.response_written()

        def failed(failure: Exception) -> None:
            self._fail(f"the broker's response to {api_name(head.api_key)} v{head.version} is malformed: {failure!r}")

        def on_frame(frame: bytes) -> None:
            try:
                response = transform(frame)
            except MALFORMED as failure:
                failed(failure)
                return
            if isinstance(response, bytes):
                finished(response)
            else:
                self._context.loop_share.run(self._client.quota_entity, response, finished, failed)
                if not is_finished:
                    # The next response must not overtake this one.
                    upstream.hold()

        upstream.expect(ExpectedResponse(*head[1:], time.monotonic(), on_frame=on_frame, waits_for_memory=True))

    def _write_piece(self, pending: PendingResponse, piece: bytes, is_last: bool) -> None:
        self._responses.write_piece(pending, piece, is_last)
        if is_last:
            self._client.response_written()

    def _fail(self, reason: str) -> None:
        """Close the client's connection because the broker's side failed."""
        self._context.metrics.lost_upstreams.inc()
        log.info("closing the connection from %s: %s", self._client.host, reason)
        self._fail_forwards(reason)
        self._client.close()

    def _fail_forwards(self, reason: str) -> None:
        for future in tuple(self._forwards):
            if not future.done():
                future.set_exception(UpstreamLost(reason))
