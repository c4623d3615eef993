"""The participations of all groups, kept in the compacted topic ``group-transactions``."""

import asyncio
import logging
import threading
from collections.abc import Iterable

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.client.compacted_topic import CompactedTopic
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config, producer_config
from streaming.client.restarting_producer import RestartingProducer
from streaming.client.topic_reader import TopicReader
from streaming.contract.rights.refusals import reason_of
from streaming.contract.rights.table import Operation
from streaming.gateway.transactions.participation import Participation
from streaming.gateway.transactions.timeouts import TransactionTimeouts
from streaming.gateway.wire.futures import call_from_thread, complete

log = logging.getLogger(__name__)

PARTITION = 0
"""The topic's only partition: reading to its end means having read every participation."""

POLL_SECONDS = 0.2

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Participation).decode


def _key_of(participation: Participation) -> bytes:
    return str(participation.id).encode()


class ParticipationLogUnavailable(Exception):
    """The topic cannot be read or written at the moment. A failed write may be in the log nevertheless."""


class ParticipationLog:
    """All participations, current between :meth:`start` and :meth:`close`, for the event loop that ran ``start``.

    One thread reads the topic, another one polls the producer for delivery reports.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        client_id: str,
        config: LibrdkafkaConfig,
        timeouts: TransactionTimeouts,
    ) -> None:
        self._topic = topic
        self._timeouts = timeouts
        self._admin = AdminClient(admin_config(bootstrap_servers, client_id, config))
        seconds = timeouts.log_delivery_seconds
        settings = producer_config(bootstrap_servers, client_id, config) | {"message.timeout.ms": round(seconds * 1000)}
        self._producer = RestartingProducer(settings, pause_seconds=seconds)
        self._participations: CompactedTopic[Participation] | None = None
        self._position = 0
        self._end_waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._reader = TopicReader(bootstrap_servers, topic, client_id, config, self._read_topic)
        self._deliveries = threading.Thread(
            target=self._poll_deliveries, name=f"{client_id}-transactions-written", daemon=True
        )

    def start(self) -> None:
        """Start the threads; reading begins as soon as the topic exists."""
        self._loop = asyncio.get_running_loop()
        self._reader.start()
        self._deliveries.start()

    def close(self) -> None:
        """Stop the threads."""
        self._closing.set()
        self._deliveries.join()
        self._reader.close()

    def cached(self) -> list[Participation]:
        """The participations that were read so far, without asking Kafka."""
        with self._lock:
            return self._values()

    async def read(self) -> list[Participation]:
        """All participations that any gateway had written when this was called; none if the topic does not exist.

        Raises :class:`ParticipationLogUnavailable`.
        """
        end = await self._end()
        with self._lock:
            if self._position >= end:
                return self._values()
            reached: asyncio.Future[None] = self._loop.create_future()
            self._end_waiters.append((end, reached))
        seconds = self._timeouts.log_read_seconds
        try:
            async with asyncio.timeout(seconds):
                await reached
        except TimeoutError as failure:
            reason = f"topic {self._topic!r} was not read to its end within {seconds:g} s"
            raise ParticipationLogUnavailable(reason) from failure
        return self.cached()

    async def write(self, participations: Iterable[Participation]) -> None:
        """Write participations; one with the same id is replaced. Raises :class:`ParticipationLogUnavailable`."""
        await self._append((_key_of(participation), _encode(participation)) for participation in participations)

    async def erase(self, participations: Iterable[Participation]) -> None:
        """Write tombstones for participations. Raises :class:`ParticipationLogUnavailable`."""
        await self._append((_key_of(participation), None) for participation in participations)

    def _values(self) -> list[Participation]:
        """The participations read so far. Call with the lock held."""
        return [] if self._participations is None else self._participations.values

    async def _end(self) -> int:
        partition = TopicPartition(self._topic, PARTITION)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        timeout = self._timeouts.log_metadata_seconds
        futures = self._admin.list_offsets({partition: latest}, request_timeout=timeout)
        try:
            end: int = (await asyncio.wrap_future(futures[partition])).offset
            return end
        except KafkaException as failure:
            # Without a leader, librdkafka reports the same for a topic that exists and for one that does not.
            if await self._is_missing():
                return 0
            error: KafkaError = failure.args[0]
            why = reason_of(error, Operation.READ, self._topic)
            reason = f"the end of topic {self._topic!r} is unknown: {why}"
            raise ParticipationLogUnavailable(reason) from failure

    async def _is_missing(self) -> bool:
        timeout = self._timeouts.log_metadata_seconds
        futures = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=timeout)
        try:
            await asyncio.wrap_future(futures[self._topic])
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            return error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        return False

    async def _append(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        await asyncio.gather(*[self._produce(key, value) for key, value in records])

    def _produce(self, key: bytes, value: bytes | None) -> "asyncio.Future[None]":
        written: asyncio.Future[None] = self._loop.create_future()

        def on_delivery(error: KafkaError | None, _record: Message) -> None:
            call_from_thread(self._loop, _settle, written, self._topic, error)

        try:
            self._producer.produce(self._topic, key, value, PARTITION, on_delivery)
        except (BufferError, KafkaException) as failure:
            written.set_exception(ParticipationLogUnavailable(f"writing to topic {self._topic!r}: {failure}"))
        return written

    def _poll_deliveries(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)

    # ---- on the reader's thread -------------------------------------------------------------------------------------

    def _read_topic(self, consumer: Consumer) -> None:
        participations = CompactedTopic(
            consumer, self._topic, "participation", _decode, _key_of, self._timeouts.log_metadata_seconds
        )
        with self._lock:
            self._participations, self._position = participations, 0
        for record in self._reader.records(consumer):
            self._on_record(participations, record)

    def _on_record(self, participations: CompactedTopic[Participation], record: Message) -> None:
        with self._lock:
            error = participations.apply(record)
            if error is None and record.partition() == PARTITION:
                offset = record.offset()
                assert offset is not None
                # At the end of the partition, the offset is that of the next record: the last ones may be compacted.
                self._position = max(self._position, offset + (record.error() is None))
                if self._end_waiters:
                    call_from_thread(self._loop, self._complete_waiters)
        if error is not None:
            # librdkafka retries; read() has a timeout.
            log.warning("reading %s: %s", self._topic, reason_of(error, Operation.READ, self._topic))

    def _complete_waiters(self) -> None:
        with self._lock:
            position = self._position
            reached = [future for end, future in self._end_waiters if end <= position]
            self._end_waiters = [
                (end, future) for end, future in self._end_waiters if end > position and not future.done()
            ]
        for future in reached:
            complete(future)


def _settle(written: "asyncio.Future[None]", topic: str, error: KafkaError | None) -> None:
    if error is None:
        complete(written)
    elif not written.done():
        why = reason_of(error, Operation.WRITE, topic)
        written.set_exception(ParticipationLogUnavailable(f"a participation was not written: {why}"))
