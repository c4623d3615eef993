"""The coordinator's two topics, for an event loop: a request event out, its answer awaited."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.request_reply import RequestReply, Sender
from streaming.gateway.request import Caller
from streaming.topics import TopicNames

__all__ = ["GroupChannel", "SentEvent"]

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS = 10.0
CONNECT_PAUSE_SECONDS = 1.0
DELIVERY_TIMEOUT_SECONDS = 3.0
"""Shorter than any answer is waited for: a client that is told to ask again must not find later that its older commit
came into the log behind the newer one."""


class SentEvent:
    """A request event on its way: ``answer`` is what comes back, or a :class:`CoordinatorError`.

    ``appended`` says whether it is known to be in the log: then it will be carried out, answered or not.
    """

    __slots__ = ("_waiter", "answer", "appended")

    def __init__(self, answer: "asyncio.Future[ResponseEnvelope]") -> None:
        self.answer = answer
        self.appended = False
        self._waiter: asyncio.Future[None] | None = None

    async def wait_appended(self) -> None:
        """Return when it is known to be in the log. Raises what ``answer`` fails with when that does not happen."""
        self._waiter = self.answer.get_loop().create_future()
        if not self.appended:
            await asyncio.wait((self._waiter, self.answer), return_when=asyncio.FIRST_COMPLETED)
        if not self.appended:
            await self.answer

    def _note_appended(self) -> None:
        """On the reader's thread."""
        self.appended = True
        # The loop is woken only where somebody waits for this: answers are what everybody else waits for.
        waiter = self._waiter
        if waiter is not None:
            with suppress(RuntimeError):
                waiter.get_loop().call_soon_threadsafe(_finish, waiter)


class GroupChannel:
    """Sends request events and hands their answers to the loop that :meth:`start` ran on.

    It connects by itself, as soon as the coordinator's topics are there; until then every event fails with
    :class:`CoordinatorNotAvailable`.
    """

    def __init__(
        self, bootstrap_servers: str, topics: TopicNames, client_id: str, config: LibrdkafkaConfig | None = None
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._client_id = client_id
        self._config: LibrdkafkaConfig = dict(config or {})
        self._request_reply: RequestReply | None = None
        self._answered: deque[tuple[asyncio.Future[ResponseEnvelope], Future[ResponseEnvelope]]] = deque()
        self._is_handing_over = False

    async def start(self) -> None:
        """Begin to connect."""
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._connected = asyncio.Event()
        self._connecting = asyncio.create_task(self._connect())

    async def close(self) -> None:
        """End the connections; events without an answer fail."""
        self._closing.set()
        await self._connecting
        if self._request_reply is not None:
            await asyncio.to_thread(self._request_reply.close)
            self._request_reply = None

    @property
    def is_connected(self) -> bool:
        """Whether the coordinator's topics were found."""
        return self._request_reply is not None

    async def wait_connected(self) -> None:
        """Return when the coordinator's topics were found, however long that takes."""
        await self._connected.wait()

    async def _connect(self) -> None:
        told = ""
        while not self._closing.is_set():
            try:
                self._request_reply = await asyncio.to_thread(self._open)
            except CoordinatorError as failure:
                if str(failure) != told:
                    told = str(failure)
                    log.warning("waiting for the coordinator's topics: %s", told)
            else:
                self._connected.set()
                return
            await _wait_at_most(self._closing, CONNECT_PAUSE_SECONDS)

    def _open(self) -> RequestReply:
        return RequestReply(
            self._bootstrap_servers,
            self._topics,
            self._client_id,
            "",
            self._config,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            delivery_timeout=DELIVERY_TIMEOUT_SECONDS,
        )

    def send(
        self,
        group_id: str,
        api: str,
        version: int,
        body: Message | Mapping[str, Any],
        caller: Caller,
        timeout: float,
    ) -> SentEvent:
        """Append a request event for a group. Its answer is given up after ``timeout`` seconds.

        See :meth:`RequestReply.send` for what the answer can fail with.
        """
        sent = SentEvent(self._loop.create_future())
        if self._request_reply is None:
            self._set_unsent(sent, f"{api} for group {group_id!r}: the coordinator's topics were not found yet")
            return sent
        pending = self._request_reply.send(
            group_id, api, version, body, timeout, _sender(caller), on_appended=sent._note_appended
        )
        answer = sent.answer
        pending.add_done_callback(lambda answered: self._take_answer(answer, answered))
        return sent

    def _set_unsent(self, sent: SentEvent, why: str) -> None:
        sent.answer.set_exception(CoordinatorNotAvailable(why))

    def _take_answer(self, answer: "asyncio.Future[ResponseEnvelope]", answered: Future[ResponseEnvelope]) -> None:
        """On the reader's thread. The loop is woken once for all answers that come until it looks."""
        self._answered.append((answer, answered))
        if not self._is_handing_over:
            self._is_handing_over = True
            self._call_loop(self._hand_over)

    def _call_loop(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            log.debug("an answer came when the event loop was closed")

    def _hand_over(self) -> None:
        # First: an answer that comes while the others are handed over must wake the loop again.
        self._is_handing_over = False
        while self._answered:
            answer, answered = self._answered.popleft()
            if answer.done():
                continue
            failure = answered.exception()
            if failure is None:
                answer.set_result(answered.result())
            else:
                answer.set_exception(failure)


def _finish(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _sender(caller: Caller) -> Sender:
    """As a broker shows it: Java's form of an address, which begins with a slash."""
    return Sender(caller.client_id, f"/{caller.host}", caller.principal)


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
