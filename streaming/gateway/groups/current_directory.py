"""Keeps listings of groups behind the answers that clients have: what was answered, the next ListGroups shows.

A broker answers once a change is in its log, and lists groups from the same memory. Here an answer and the group's
record in the directory come through different partitions, in any order. So an answer that names a change is passed on
once this gateway has read that record: then it is in the log. And a listing waits until this gateway has read what the
log had when the listing began: so it shows what another gateway has passed on.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import msgspec
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from coordinator_logic.messages import ResponseEnvelope
from streaming.client.directory import GroupDirectory
from streaming.client.librdkafka import admin_config
from streaming.contract.topics import TopicNames
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.wire.futures import call_from_thread, complete

LONGEST_HOLD_SECONDS = 1.0
"""How long an answer waits for the directory's record, which is written with it, before it is passed on without."""


class CurrentDirectory:
    """The directory, for an event loop; ``seconds`` is how long a listing waits for its newest records."""

    def __init__(self, options: GatewayOptions, directory: GroupDirectory, seconds: float) -> None:
        self._directory = directory
        self._topic = TopicNames(options.topic_prefix).directory
        self._seconds = seconds
        self._admin = AdminClient(admin_config(options.bootstrap_servers, CLIENT_ID, options.kafka))
        self._running: asyncio.Task[bool] | None = None
        self._next: asyncio.Task[bool] | None = None

    async def is_current(self) -> bool:
        """Wait until the entries show every record that the topic has now; False if they do not in time.

        Calls that wait for a look that has not begun share it.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._look(self._running))
        return await asyncio.shield(self._next)

    def pass_on(self, response: "asyncio.Future[ResponseEnvelope]", answer: ResponseEnvelope) -> None:
        """Complete a response with an answer, once the directory shows the change that the answer names."""
        change, group_id = answer.directory_change, answer.group_id
        if change is msgspec.UNSET or not self._directory.is_complete:
            response.set_result(answer)
            return
        loop = asyncio.get_running_loop()

        def finish() -> None:
            overdue.cancel()
            self._directory.forget(shown, group_id)
            if not response.done():
                response.set_result(answer)

        shown = partial(call_from_thread, loop, finish)
        overdue = loop.call_later(LONGEST_HOLD_SECONDS, finish)
        self._directory.when_shown(group_id, change, shown)

    async def _look(self, before: asyncio.Task[bool] | None) -> bool:
        if before is not None:
            await asyncio.wait((before,))
        self._running, self._next = asyncio.current_task(), None
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        read = partial(call_from_thread, reached.get_loop(), complete, reached)
        with suppress(KafkaException, TimeoutError):
            async with asyncio.timeout(self._seconds):
                self._directory.when_read(await self._ends(), read)
                await reached
                return True
        self._directory.forget(read)
        return False

    async def _ends(self) -> Mapping[int, int]:
        """The offset of the next record of each partition. Raises KafkaException."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self._topic, partition): latest for partition in self._directory.partitions}
        listed = self._admin.list_offsets(asked, request_timeout=self._seconds)
        return {each.partition: (await asyncio.wrap_future(future)).offset for each, future in listed.items()}
