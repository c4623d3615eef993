"""The broker's side: sends the same requests over Kafka's wire protocol."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v1.request import InitProducerIdRequest
from kio.schema.types import TransactionalId
from kio.static.primitive import i32Timedelta

from coordinator_logic.apis import APIS
from coordinator_logic.messages import DescribeGroupsRequest, RequestBody, ResponseBody
from tests.oracle.scripts.script import transactional_id
from tests.oracle.sides.connection import Connection, Connections, Disconnected
from tests.oracle.sides.logic_side import PROBE_VERSION
from tests.support.wire_types import from_wire, to_wire

PAUSE_SECONDS = 0.05
TRANSACTION_TIMEOUT = i32Timedelta.parse(timedelta(minutes=1))


def milliseconds() -> int:
    """Return the current time, ms since the epoch."""
    return time.time_ns() // 1_000_000


class BrokerSide:
    """A broker's coordinator for one group. ``answers`` is by step; None if the broker closed the connection."""

    def __init__(self, connections: Connections, group_id: str) -> None:
        self._connections = connections
        self._group_id = group_id
        self.answers: dict[int, ResponseBody | None] = {}
        self.answered_at: dict[int, int] = {}
        self._waiting: dict[int, asyncio.Task[None]] = {}
        self._response_arrived = asyncio.Event()

    async def connection(self) -> Connection:
        """Return a connection for the next request."""
        return await self._connections.acquire()

    def send(
        self, connection: Connection, number: int, api: str, version: int, client_id: str, body: RequestBody
    ) -> None:
        """Send step ``number`` of a script at once; its response is added to ``answers``."""
        key = APIS[api].key
        assert key is not None, f"{api} is not an API of Kafka"
        payload = to_wire(body, load_request_schema(key, version))
        connection.send(payload, client_id)
        self._waiting[number] = asyncio.create_task(self._await_answer(connection, number, api, payload))

    async def _await_answer(self, connection: Connection, number: int, api: str, payload: object) -> None:
        try:
            answer: ResponseBody = from_wire(await connection.receive(payload), APIS[api].response_type)
            self.answers[number] = answer
            self._connections.release(connection)
        except Disconnected:
            self.answers[number] = None
        except asyncio.CancelledError:
            connection.close()
            raise
        self.answered_at[number] = milliseconds()
        del self._waiting[number]
        self._response_arrived.set()

    async def wait_for(self, numbers: set[int], until: int) -> bool:
        """Wait for the responses to these steps, at most until a time (ms); return whether all have arrived."""
        while not numbers <= self.answers.keys():
            self._response_arrived.clear()
            remaining = (until - milliseconds()) / 1000
            if remaining <= 0:
                return False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._response_arrived.wait(), remaining)
        return True

    async def probe(self) -> ResponseBody:
        """Return the response of DescribeGroups."""
        key = APIS["DescribeGroups"].key
        assert key is not None
        payload = to_wire(DescribeGroupsRequest([self._group_id]), load_request_schema(key, PROBE_VERSION))
        answer: ResponseBody = from_wire(await self._connections.ask(payload), APIS["DescribeGroups"].response_type)
        return answer

    async def new_producer_id(self, number: int) -> int:
        """Return the id of a new producer; its epoch is 0."""
        name = TransactionalId(transactional_id(self._group_id, number))
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout=TRANSACTION_TIMEOUT)
        answer = await self._connections.ask(request)
        while answer.error_code.retriable:
            await asyncio.sleep(PAUSE_SECONDS)
            answer = await self._connections.ask(request)
        assert answer.error_code is ErrorCode.none, answer
        return int(answer.producer_id)

    async def close(self) -> None:
        """Close the connections with an outstanding response."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
