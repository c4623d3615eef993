"""Fetches records: librdkafka's consumer with partitions assigned by hand, told where to begin."""

import logging
import time
from collections.abc import Iterable

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from coordinator_logic.consumer_protocol import TopicPartition
from streaming.client import librdkafka
from streaming.client.consumer_types import ConsumerConfig, ConsumerRecord
from streaming.client.errors import NoOffsetForPartition

log = logging.getLogger(__name__)

_RESET_POLICIES = {"latest": "latest", "earliest": "earliest", "none": "error"}

_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})
"""Errors that librdkafka tells of and gets over by itself."""

_UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
"""A topic was deleted, or a broker has not heard of it yet. As with Kafka's client, the group's leader finds out.

librdkafka seldom tells: when the topic of a partition that it fetches already is deleted, it keeps trying in silence,
and the leader finds out when its metadata has come of age.
"""

_REFRESH_PAUSE_SECONDS = 1.0
"""Between two questions for partitions that stay unknown: ``retry.backoff.max.ms`` of Kafka's client."""

_LONGEST_REFRESH_MS = 3_600_000
"""librdkafka takes no longer interval."""


class Fetcher:
    """Reads the partitions that it was told to :meth:`start`. Belongs to the consumer's thread.

    ``met_unknown_partition``: a broker has said that a partition does not exist; whoever acts on it resets it.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._timeout = config.default_api_timeout_ms / 1000
        self._max_records = config.max_poll_records
        self._fetching: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._failure: Exception | None = None
        self.met_unknown_partition = False
        # librdkafka may not fetch a partition that it has not heard of before its next look at the cluster.
        self._unheard_of: set[TopicPartition] = set()
        self._refresh_at = 0.0
        rack: librdkafka.LibrdkafkaConfig = {"client.rack": config.client_rack} if config.client_rack else {}
        self._consumer = librdkafka.new_consumer(
            config.bootstrap_servers,
            config.client_id,
            # A fetch that waits at the broker holds back the first fetch of a partition that is added.
            {
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": min(config.metadata_max_age_ms, _LONGEST_REFRESH_MS),
                **config.config,
            },
            {"auto.offset.reset": _RESET_POLICIES[config.auto_offset_reset], **rack},
        )

    def close(self) -> None:
        """Stop fetching and disconnect."""
        self._consumer.close()

    def start(self, partition: TopicPartition, offset: int, *, paused: bool) -> None:
        """Fetch a partition from ``offset`` on, which may be one that is fetched from elsewhere now."""
        self.stop([partition])
        self._consumer.incremental_assign([confluent_kafka.TopicPartition(*partition, offset)])
        self._fetching.add(partition)
        self._unheard_of.add(partition)
        if paused:
            self.pause(partition)

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch these no longer; what has been fetched of them and not handed out is dropped."""
        fetched = self._fetching.intersection(partitions)
        for partition in fetched & self._paused:
            # librdkafka remembers a pause beyond the assignment that it was made in.
            self.resume(partition)
        self._fetching -= fetched
        self._unheard_of -= fetched
        if fetched:
            self._consumer.incremental_unassign([confluent_kafka.TopicPartition(*p) for p in fetched])

    def pause(self, partition: TopicPartition) -> None:
        """Hand out no records of a partition until it is resumed."""
        if partition in self._fetching:
            self._paused.add(partition)
            self._consumer.pause([confluent_kafka.TopicPartition(*partition)])

    def resume(self, partition: TopicPartition) -> None:
        """Hand out records of a partition again, from where it was paused."""
        if partition in self._fetching:
            self._paused.discard(partition)
            self._consumer.resume([confluent_kafka.TopicPartition(*partition)])

    def poll(self, timeout: float) -> list[ConsumerRecord]:
        """Records in the order of their offsets within each partition; waits for the first up to ``timeout`` s.

        Raises:
            NoOffsetForPartition: the log no longer has the offset, and ``auto_offset_reset`` is none.
            confluent_kafka.KafkaException: a partition cannot be fetched, e.g. for lack of rights.
        """
        self._raise_kept_failure()
        if self._unheard_of and time.monotonic() >= self._refresh_at:
            self._refresh()
        first = self._consumer.poll(timeout)
        fetched = [] if first is None else [first, *self._consumer.consume(self._max_records - 1, 0)]
        records = [record for message in fetched if (record := self._record(message)) is not None]
        if not records:
            self._raise_kept_failure()
        return records

    def beginning_offset(self, partition: TopicPartition) -> int:
        """The lowest offset that the log has."""
        return librdkafka.beginning_offset(self._consumer, *partition, self._timeout)

    def end_offset(self, partition: TopicPartition) -> int:
        """The offset that the next record will have."""
        return librdkafka.end_offset(self._consumer, *partition, self._timeout)

    def _refresh(self) -> None:
        """Have librdkafka look at the topics of new partitions now; what is still missing is asked for again."""
        self._refresh_at = time.monotonic() + _REFRESH_PAUSE_SECONDS
        for topic in {partition.topic for partition in self._unheard_of}:
            try:
                known = self._consumer.list_topics(topic, timeout=_REFRESH_PAUSE_SECONDS).topics[topic].partitions
            except KafkaException as failure:
                log.warning("asking for the partitions of %s: %s", topic, failure)
                return
            self._unheard_of -= {TopicPartition(topic, number) for number in known}

    def _raise_kept_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _record(self, message: Message) -> ConsumerRecord | None:
        """The record in a message; None for an error, which is kept so that records before it are not lost."""
        error = message.error()
        if error is not None:
            self._keep(error, message)
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

    def _keep(self, error: KafkaError, message: Message) -> None:
        topic, partition = message.topic(), message.partition()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._failure = NoOffsetForPartition(f"{topic}-{partition}: {error.str()}")
        elif error.code() in _UNKNOWN:
            self.met_unknown_partition = True
            if topic is not None and partition is not None:
                self._unheard_of |= self._fetching & {TopicPartition(topic, partition)}
        elif error.code() not in _PASSING and not error.retriable():
            self._failure = KafkaException(error)


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
