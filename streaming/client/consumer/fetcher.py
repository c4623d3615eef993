"""Fetches records with librdkafka's consumer, from partitions and offsets that are assigned manually."""

import logging
import time
from collections.abc import Iterable

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client import librdkafka
from streaming.client.consumer.types import ConsumerConfig, ConsumerRecord
from streaming.client.errors import NoOffsetForPartition

log = logging.getLogger(__name__)

_RESET_POLICIES = {"latest": "latest", "earliest": "earliest", "none": "error"}

_TRANSIENT = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})
"""Errors that librdkafka reports and recovers from automatically."""

_UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
"""A topic was deleted, or is not in a broker's metadata yet. The group's leader then refreshes its metadata, as with
Kafka's client.

librdkafka rarely reports it: if the topic of a partition that it fetches is deleted, it retries silently, and the
leader notices after ``metadata_max_age_ms``.
"""

_METADATA_TIMEOUT_SECONDS = 1.0

_LONGEST_REFRESH_MS = 3_600_000
"""The longest interval that librdkafka accepts."""


class Fetcher:
    """Fetches from the partitions that were passed to :meth:`start`. Not thread-safe.

    ``saw_unknown_partition`` is set when a broker reports that a partition does not exist; the consumer's coordinator
    resets it after it has acted.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._timeout = config.default_api_timeout_ms / 1000
        self._max_records = config.max_poll_records
        self._fetching: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._failure: Exception | None = None
        self.saw_unknown_partition = False
        # librdkafka does not fetch a partition that is missing from its metadata before the next refresh.
        self._missing_metadata: set[TopicPartition] = set()
        self._refresh_at = 0.0
        self._refresh_pause = config.retry_backoff_max_ms / 1000
        rack: librdkafka.LibrdkafkaConfig = {"client.rack": config.client_rack} if config.client_rack else {}
        self._consumer = librdkafka.new_consumer(
            config.bootstrap_servers,
            config.client_id,
            # A fetch that waits at the broker delays the first fetch of a partition that is added.
            {
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": min(config.metadata_max_age_ms, _LONGEST_REFRESH_MS),
                **config.config,
            },
            {"auto.offset.reset": _RESET_POLICIES[config.auto_offset_reset], **rack},
        )

    def close(self) -> None:
        """Stop fetching, and close the connections."""
        self._consumer.close()

    def start(self, partition: TopicPartition, offset: int, *, paused: bool) -> None:
        """Fetch a partition from ``offset`` on, whether or not it is being fetched already."""
        self.stop([partition])
        self._consumer.incremental_assign([confluent_kafka.TopicPartition(*partition, offset)])
        self._fetching.add(partition)
        self._missing_metadata.add(partition)
        if paused:
            self.pause(partition)

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching partitions, and drop their fetched records that ``poll`` has not returned."""
        fetched = self._fetching.intersection(partitions)
        for partition in fetched & self._paused:
            # librdkafka keeps a pause even when the partition is unassigned.
            self.resume(partition)
        self._fetching -= fetched
        self._missing_metadata -= fetched
        if fetched:
            self._consumer.incremental_unassign([confluent_kafka.TopicPartition(*p) for p in fetched])

    def pause(self, partition: TopicPartition) -> None:
        """Return no records of a partition until :meth:`resume`."""
        if partition in self._fetching:
            self._paused.add(partition)
            self._consumer.pause([confluent_kafka.TopicPartition(*partition)])

    def resume(self, partition: TopicPartition) -> None:
        """Return records of a paused partition again, from where it was paused."""
        if partition in self._fetching:
            self._paused.discard(partition)
            self._consumer.resume([confluent_kafka.TopicPartition(*partition)])

    def poll(self, timeout: float) -> list[ConsumerRecord]:
        """Records, by ascending offset within each partition; waits up to ``timeout`` seconds for the first.

        Raises:
            NoOffsetForPartition: an offset is outside the log, and ``auto_offset_reset`` is ``none``.
            confluent_kafka.KafkaException: a partition cannot be fetched, e.g. for lack of authorization.
        """
        self._raise_pending_failure()
        if self._missing_metadata and time.monotonic() >= self._refresh_at:
            self._refresh()
        first = self._consumer.poll(timeout)
        fetched = [] if first is None else [first, *self._consumer.consume(self._max_records - 1, 0)]
        records = [record for message in fetched if (record := self._record(message)) is not None]
        if not records:
            self._raise_pending_failure()
        return records

    def beginning_offset(self, partition: TopicPartition) -> int:
        """The lowest offset in the log of a partition."""
        return librdkafka.beginning_offset(self._consumer, *partition, self._timeout)

    def end_offset(self, partition: TopicPartition) -> int:
        """The offset of the next record to be appended to a partition."""
        return librdkafka.end_offset(self._consumer, *partition, self._timeout)

    def _refresh(self) -> None:
        """Have librdkafka refresh its metadata of topics with missing partitions; repeated until all are known."""
        self._refresh_at = time.monotonic() + self._refresh_pause
        for topic in {partition.topic for partition in self._missing_metadata}:
            try:
                known = self._consumer.list_topics(topic, timeout=_METADATA_TIMEOUT_SECONDS).topics[topic].partitions
            except KafkaException as failure:
                log.warning("the metadata of topic %s could not be refreshed: %s", topic, failure)
                return
            self._missing_metadata -= {TopicPartition(topic, number) for number in known}

    def _raise_pending_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _record(self, message: Message) -> ConsumerRecord | None:
        """The record in a message. None for an error, which is raised later so that no record before it is lost."""
        error = message.error()
        if error is not None:
            self._note_error(error, message)
            return None
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        if TopicPartition(topic, partition) not in self._fetching:
            return None
        leader_epoch = message.leader_epoch()
        return ConsumerRecord(
            topic,
            partition,
            offset,
            message.timestamp()[1],
            message.key(),
            message.value(),
            _headers(message),
            -1 if leader_epoch is None else leader_epoch,
        )

    def _note_error(self, error: KafkaError, message: Message) -> None:
        topic, partition = message.topic(), message.partition()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._failure = NoOffsetForPartition(f"{topic}-{partition}: {error.str()}")
        elif error.code() in _UNKNOWN:
            self.saw_unknown_partition = True
            if topic is not None and partition is not None:
                self._missing_metadata |= self._fetching & {TopicPartition(topic, partition)}
        elif error.code() not in _TRANSIENT and not error.retriable():
            self._failure = KafkaException(error)


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
