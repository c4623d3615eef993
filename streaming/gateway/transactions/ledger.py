"""The participations, as the compacted topic ``group-transactions`` has them."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    admin_config,
    producer_config,
    required_partition_count,
)
from streaming.gateway.reading import TopicReader
from streaming.gateway.transactions.participation import Participation

__all__ = ["Ledger", "LedgerUnavailable"]

log = logging.getLogger(__name__)

PARTITION = 0
"""The only one: a gateway that has read to its end has seen everything."""

POLL_SECONDS = 0.2
ASK_TIMEOUT_SECONDS = 4.0
READ_TIMEOUT_SECONDS = 4.0
DELIVERY_TIMEOUT_SECONDS = 4.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Participation).decode


class LedgerUnavailable(Exception):
    """The topic cannot be read or written just now; a write that failed may be in the log all the same."""


class Ledger:
    """All lines, kept current between :meth:`start` and :meth:`close`, for the loop that ``start`` ran on.

    One thread reads the topic, another one learns what the broker has taken.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, client_id: str, config: LibrdkafkaConfig | None = None
    ) -> None:
        self._topic = topic
        given: LibrdkafkaConfig = dict(config or {})
        self._admin = AdminClient(admin_config(bootstrap_servers, client_id, given))
        settings = producer_config(bootstrap_servers, client_id, given)
        self._producer = Producer(settings | {"message.timeout.ms": round(DELIVERY_TIMEOUT_SECONDS * 1000)})
        self._lines: dict[bytes | None, Participation] = {}
        self._position = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._reader = TopicReader(bootstrap_servers, topic, client_id, given, self._read_on)
        self._deliveries = threading.Thread(
            target=self._poll_deliveries, name=f"{client_id}-transactions-written", daemon=True
        )

    def start(self) -> None:
        """Begin to read, as soon as the topic is there."""
        self._loop = asyncio.get_running_loop()
        self._reader.start()
        self._deliveries.start()

    def close(self) -> None:
        """End the threads."""
        self._closing.set()
        self._deliveries.join()
        self._reader.close()

    def seen(self) -> list[Participation]:
        """The lines that were read so far."""
        with self._lock:
            return list(self._lines.values())

    async def read(self) -> list[Participation]:
        """All lines that any gateway has written before this was called; none where there is no such topic.

        Raises :class:`LedgerUnavailable`.
        """
        end = await self._end()
        with self._lock:
            if self._position >= end:
                return list(self._lines.values())
            reached: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((end, reached))
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                await reached
        except TimeoutError as failure:
            raise LedgerUnavailable(f"topic {self._topic!r} was not read to its end in time") from failure
        return self.seen()

    async def write(self, participations: Iterable[Participation]) -> None:
        """Write lines, new ones or in the place of those with their ids. Raises :class:`LedgerUnavailable`."""
        await self._append((participation.id, _encode(participation)) for participation in participations)

    async def erase(self, participations: Iterable[Participation]) -> None:
        """Remove lines. Raises :class:`LedgerUnavailable`."""
        await self._append((participation.id, None) for participation in participations)

    async def _end(self) -> int:
        partition = TopicPartition(self._topic, PARTITION)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = self._admin.list_offsets({partition: latest}, request_timeout=ASK_TIMEOUT_SECONDS)
        try:
            end: int = (await asyncio.wrap_future(asked[partition])).offset
            return end
        except KafkaException as failure:
            # Without a leader, librdkafka does not say whether there is such a topic.
            if await self._is_missing():
                return 0
            error: KafkaError = failure.args[0]
            raise LedgerUnavailable(f"the end of topic {self._topic!r}: {error.str()}") from failure

    async def _is_missing(self) -> bool:
        asked = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=ASK_TIMEOUT_SECONDS)
        try:
            await asyncio.wrap_future(asked[self._topic])
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            return error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        return False

    async def _append(self, records: Iterable[tuple[int, bytes | None]]) -> None:
        written = [self._produce(str(key).encode(), value) for key, value in records]
        await asyncio.gather(*written)

    def _produce(self, key: bytes, value: bytes | None) -> "asyncio.Future[None]":
        written: asyncio.Future[None] = self._loop.create_future()

        def delivered(error: KafkaError | None, _record: Message) -> None:
            self._call_loop(lambda: _finish(written, error))

        try:
            self._producer.produce(self._topic, value, key, partition=PARTITION, on_delivery=delivered)
        except (BufferError, KafkaException) as failure:
            written.set_exception(LedgerUnavailable(f"writing to topic {self._topic!r}: {failure}"))
        return written

    def _poll_deliveries(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)

    def _call_loop(self, what: Callable[[], Any]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            log.debug("the event loop was closed")

    # ---- the reader's thread -------------------------------------------------------------------------------------

    def _read_on(self, consumer: Consumer) -> None:
        required_partition_count(consumer, self._topic, ASK_TIMEOUT_SECONDS)
        consumer.assign([TopicPartition(self._topic, PARTITION, 0)])
        with self._lock:
            self._lines, self._position = {}, 0
        for record in self._reader.records(consumer):
            self._take(record)

    def _take(self, record: Message) -> None:
        error = record.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            # librdkafka goes on trying by itself; whoever waits has a timeout.
            log.warning("reading %s: %s", self._topic, error.str())
            return
        offset = record.offset()
        assert offset is not None
        with self._lock:
            if error is None:
                self._take_line(record.key(), record.value())
            # At the end, it is the offset of the record that is to come: the last ones may have been compacted.
            self._position = max(self._position, offset + (error is None))
            if self._waiting:
                self._call_loop(self._wake)

    def _take_line(self, key: bytes | None, value: bytes | None) -> None:
        if value is None:
            self._lines.pop(key, None)
            return
        try:
            self._lines[key] = _decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as failure:
            log.warning("ignored a line of %s that cannot be read, key %r: %s", self._topic, key, failure)

    def _wake(self) -> None:
        with self._lock:
            position = self._position
            reached = [future for end, future in self._waiting if end <= position]
            self._waiting = [(end, future) for end, future in self._waiting if end > position and not future.done()]
        for future in reached:
            if not future.done():
                future.set_result(None)


def _finish(written: "asyncio.Future[None]", error: KafkaError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(LedgerUnavailable(f"a line was not written: {error.str()}"))
