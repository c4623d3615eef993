"""The request and response topics, for an event loop: append a request event, await its response."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable
from streaming.client.request_reply import RequestReply, Sender
from streaming.contract.topics import TopicNames
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.wire.client_request import Caller
from streaming.gateway.wire.futures import call_from_thread, complete

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS = 10.0
CONNECT_RETRY_SECONDS = 1.0
TOPICS_EXPECTED_SECONDS = 15.0
"""A coordinator that starts together with the gateway has created its topics by then."""


PassOn = Callable[["asyncio.Future[ResponseEnvelope]", ResponseEnvelope], None]


class RequestEvent:
    """A request event that was sent.

    ``response`` completes with the coordinator's response, or fails with a :class:`CoordinatorError`; cancel it when
    nobody waits for it any more. ``appended`` is true once the event is known to be in the log: the coordinator will
    carry it out, with or without a response.
    """

    __slots__ = ("_append_waiter", "appended", "response")

    def __init__(self, response: "asyncio.Future[ResponseEnvelope]") -> None:
        self.response = response
        self.appended = False
        self._append_waiter: asyncio.Future[None] | None = None

    async def wait_appended(self) -> None:
        """Wait until the event is known to be in the log. Raises the failure of ``response`` if it never is."""
        self._append_waiter = self.response.get_loop().create_future()
        if not self.appended:
            await asyncio.wait((self._append_waiter, self.response), return_when=asyncio.FIRST_COMPLETED)
        if not self.appended:
            await self.response

    def _on_appended(self) -> None:
        """Called on the reader's thread."""
        self.appended = True
        # Most callers wait for the response only; the loop is woken just for those that wait for the append.
        waiter = self._append_waiter
        if waiter is not None:
            call_from_thread(waiter.get_loop(), complete, waiter)


class GroupChannel:
    """Sends request events, and delivers their responses to the event loop that :meth:`start` ran on.

    It connects as soon as the coordinator's topics exist. Until then every event fails with
    :class:`CoordinatorNotAvailable`. ``stall_seconds`` is how long a broker may take to append an event before further
    events wait no longer for it. ``identity_key`` signs the client of each event, see
    :mod:`streaming.contract.identity`. ``pass_on`` completes a response with the coordinator's, at once or later.
    """

    def __init__(
        self, options: GatewayOptions, stall_seconds: float, identity_key: bytes | None, pass_on: PassOn
    ) -> None:
        self._options = options
        self._pass_on = pass_on
        self._stall_seconds = stall_seconds
        self._identity_key = identity_key
        self._request_reply: RequestReply | None = None
        self._completed: deque[tuple[asyncio.Future[ResponseEnvelope], Future[ResponseEnvelope]]] = deque()
        self._is_delivery_scheduled = False

    async def start(self) -> None:
        """Begin to connect, in a task."""
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._connecting = asyncio.create_task(self._connect())

    async def close(self) -> None:
        """Close the connections; events without a response fail."""
        self._closing.set()
        await self._connecting
        if self._request_reply is not None:
            await asyncio.to_thread(self._request_reply.close)
            self._request_reply = None

    @property
    def is_connected(self) -> bool:
        """Whether the coordinator's topics were found."""
        return self._request_reply is not None

    @property
    def failure(self) -> str | None:
        """Why no event can be sent, see :attr:`RequestReply.failure`; None also while it connects."""
        return None if self._request_reply is None else self._request_reply.failure

    def is_alive(self) -> bool:
        """Whether responses are received; true also while it connects."""
        return self._request_reply is None or self._request_reply.is_alive()

    @property
    def outstanding(self) -> int:
        """How many events await a response."""
        return 0 if self._request_reply is None else self._request_reply.outstanding

    async def _connect(self) -> None:
        last_failure = ""
        expected_by = self._loop.time() + TOPICS_EXPECTED_SECONDS
        while not self._closing.is_set():
            try:
                self._request_reply = await asyncio.to_thread(self._open)
            except CoordinatorError as failure:
                is_starting = isinstance(failure, CoordinatorNotAvailable) and self._loop.time() < expected_by
                if not is_starting and str(failure) != last_failure:
                    last_failure = str(failure)
                    log.warning("waiting for the coordinator's topics: %s", failure.message)
            else:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), CONNECT_RETRY_SECONDS)

    def _open(self) -> RequestReply:
        return RequestReply(
            self._options.bootstrap_servers,
            TopicNames(self._options.topic_prefix),
            CLIENT_ID,
            "",
            self._options.kafka,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            stall_timeout=self._stall_seconds,
            identity_key=self._identity_key,
        )

    def send(
        self,
        group_id: str,
        api: str,
        version: int,
        body: Message | Mapping[str, Any],
        caller: Caller,
        timeout: float,
    ) -> RequestEvent:
        """Append a request event for a group; its response fails after ``timeout`` seconds.

        See :meth:`RequestReply.send` for the errors with which a response can fail.
        """
        response: asyncio.Future[ResponseEnvelope] = self._loop.create_future()
        event = RequestEvent(response)
        if self._request_reply is None:
            reason = f"{api} for group {group_id!r}: the coordinator's topics have not been found yet"
            response.set_exception(CoordinatorNotAvailable(reason))
            return event
        # As brokers record a client: Java prints an address with a leading slash.
        sender = Sender(caller.client_id, f"/{caller.host}", caller.principal)
        pending = self._request_reply.send(
            group_id, api, version, body, timeout, sender, on_appended=event._on_appended
        )
        pending.add_done_callback(lambda completed: self._on_completed(response, completed))
        # The client has gone: what waits for its response must not outlive it.
        response.add_done_callback(lambda done: pending.cancel() if done.cancelled() else None)
        return event

    def _on_completed(self, response: "asyncio.Future[ResponseEnvelope]", completed: Future[ResponseEnvelope]) -> None:
        """Called on the reader's thread. One wake-up of the loop serves all responses that arrive until it runs."""
        if completed.cancelled():
            return
        self._completed.append((response, completed))
        if not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            call_from_thread(self._loop, self._deliver)

    def _deliver(self) -> None:
        # Reset first: a response that arrives during the delivery must schedule another one.
        self._is_delivery_scheduled = False
        while self._completed:
            response, completed = self._completed.popleft()
            if response.done():
                continue
            failure = completed.exception()
            if failure is None:
                self._pass_on(response, completed.result())
            else:
                response.set_exception(failure)
