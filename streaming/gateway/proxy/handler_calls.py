"""The requests of one connection that handlers answer: they run concurrently, and the responses keep their order."""

import asyncio
import logging
import time
from contextvars import copy_context
from functools import partial

from kio.index import load_response_schema

from streaming.gateway.proxy.admission.answer_memory import AnswerRoom, ConnectionAnswers
from streaming.gateway.proxy.broker_link import BrokerLink, ClientSide
from streaming.gateway.proxy.listener_context import ListenerContext
from streaming.gateway.proxy.response_queue import PendingResponse, ResponseQueue
from streaming.gateway.wire.answer_room import current_answer_room
from streaming.gateway.wire.api_keys import api_name
from streaming.gateway.wire.client_request import ClientRequest, Handler
from streaming.gateway.wire.codec import encode_response_in_steps
from streaming.gateway.wire.error_names import error_name
from streaming.gateway.wire.forwarding import current_forward
from streaming.gateway.wire.frames import RequestHead

log = logging.getLogger(__name__)


class HandlerCalls:
    """The running handlers of one connection. A handler that raises closes the connection."""

    def __init__(
        self, client: ClientSide, context: ListenerContext, responses: ResponseQueue, link: BrokerLink
    ) -> None:
        self._client = client
        self._context = context
        self._responses = responses
        self._link = link
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers = ConnectionAnswers(
            context.request_memory, lambda: client.unsent_bytes, lambda: responses.delayed_bytes
        )

    def start(self, head: RequestHead, request: ClientRequest, handle: Handler | None = None) -> None:
        """Call the handler of a request: ``handle``, or that of the served API."""
        context = copy_context()
        context.run(current_forward.set, partial(self._link.forward, request.caller.client_id))
        pending = self._responses.append(head.length)
        room = AnswerRoom(self._answers, partial(self._responses.is_first, pending))
        context.run(current_answer_room.set, room.reserve)
        handle = handle or self._context.served[head.api_key].handle
        call = self._call(head, request, handle, pending, room)
        task = asyncio.get_running_loop().create_task(call, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def relieve(self) -> None:
        """Let an answer start that has room, because the client has read some bytes."""
        self._answers.relieve()

    def cancel(self) -> None:
        """Cancel all running handlers."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _call(
        self, head: RequestHead, request: ClientRequest, handle: Handler, pending: PendingResponse, room: AnswerRoom
    ) -> None:
        try:
            await self._answer(head, request, handle, pending)
        finally:
            # Not before the response is written: the next one would start as if its client had read this one.
            room.release()

    async def _answer(
        self, head: RequestHead, request: ClientRequest, handle: Handler, pending: PendingResponse
    ) -> None:
        started = time.monotonic()
        name = api_name(head.api_key)
        try:
            response = await handle(request)
            response_type = load_response_schema(head.api_key, head.version)
            encoding = encode_response_in_steps(response, head.correlation_id, response_type)
            frame = await self._context.loop_share.complete(request.caller, encoding)
        except Exception:
            log.exception(
                "closing the connection of %s: the handler of %s v%s failed", request.caller, name, head.version
            )
            self._context.metrics.count_failed_handler(name)
            self._client.close()
            return
        self._context.metrics.count_answer(name, head.version, error_name(response))
        self._context.metrics.time_handler(name, time.monotonic() - started)
        self._responses.complete(pending, frame)
        self._client.response_written()
