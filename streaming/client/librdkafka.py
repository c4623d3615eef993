"""Creates librdkafka's clients with the settings that the coordinator's clients need, and queries metadata."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator_logic.errors import Error
from streaming.client.errors import (
    CoordinatorError,
    NotAuthorized,
    RequestTimedOut,
    TopicNotFound,
    coordinator_error,
)
from streaming.contract.output.broker_failures import NO_ANSWER
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Operation
from streaming.contract.waits import KAFKA, waiting_for

LibrdkafkaConfig = Mapping[str, str | int | float | bool]

NO_LEADER_YET = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LISTENER_NOT_FOUND,
        # The client's metadata is older than the broker's, or newer: brokers learn of a leader one after the other.
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        # The leader does not know yet how far the other replicas are.
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors of a partition that exists, and whose leader changes: they end by themselves. Kafka's admin client asks for
offsets again after each of them."""
"""The errors of a partition just after its topic was created, or while its leadership moves."""
_NO_LEADER_PAUSE_SECONDS = 0.1

T = TypeVar("T")

_LIBRDKAFKA_LOGGER = logging.getLogger("streaming.client.librdkafka")


def _is_no_startup_retry(record: logging.LogRecord) -> bool:
    # A producer asks for its id until the broker's transaction coordinator has loaded, at every start of a cluster.
    message = record.getMessage()
    return not (message.startswith("GETPID") and message.endswith("retrying"))


_LIBRDKAFKA_LOGGER.addFilter(_is_no_startup_retry)


class GrouplessConsumer(Consumer):
    """A consumer that hears nothing of the group whose id librdkafka requires.

    librdkafka looks up the group's coordinator, which needs the right to describe the group. Nothing uses the answer.
    """

    def poll(self, timeout: float = -1) -> Message | None:
        """The next record or error, None if nothing comes within ``timeout`` seconds; negative: wait for ever."""
        deadline = time.monotonic() + timeout
        record = super().poll(timeout)
        while record is not None and _is_about_its_group(record):
            record = super().poll(max(0.0, deadline - time.monotonic()) if timeout >= 0 else timeout)
        return record

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """At most so many records and errors, those that come within ``timeout`` seconds."""
        return [record for record in super().consume(num_messages, timeout) if not _is_about_its_group(record)]


def _is_about_its_group(record: Message) -> bool:
    error = record.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def new_consumer(
    bootstrap_servers: str, client_id: str, extra: LibrdkafkaConfig, settings: LibrdkafkaConfig
) -> Consumer:
    """A consumer for manual assignment, which joins no group.

    extra: the user's librdkafka configuration (security etc.). settings: override ``extra``.
    """
    config: dict[str, Any] = {
        **extra,
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        # librdkafka requires a group id. Without a subscription or a commit it never uses it.
        "group.id": client_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Requests are small and sent one at a time: Nagle's algorithm would delay each until an ACK.
        "socket.nagle.disable": True,
        **settings,
    }
    return GrouplessConsumer(config, logger=_LIBRDKAFKA_LOGGER)


def producer_config(bootstrap_servers: str, client_id: str, extra: LibrdkafkaConfig) -> dict[str, Any]:
    """The configuration of an idempotent producer that sends every record at once."""
    return {
        **extra,
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "socket.nagle.disable": True,
        "logger": _LIBRDKAFKA_LOGGER,
    }


def admin_config(bootstrap_servers: str, client_id: str, extra: LibrdkafkaConfig) -> dict[str, Any]:
    """The configuration of an admin client that queries metadata.

    It logs nothing: nothing polls it between queries, and a failed query raises. No query creates a topic.
    """
    return {
        **extra,
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        "log_level": 0,
        "allow.auto.create.topics": False,
    }


def has_leaders(config: Mapping[str, Any], topic: str, seconds: float) -> bool:
    """Whether a broker tells a new client within this time that every partition of a topic has a leader.

    An older client may know no broker any more, and wait for those that are there.

    config: as from :func:`admin_config`.
    """
    try:
        partitions = AdminClient(dict(config)).list_topics(topic, seconds).topics[topic].partitions
    except KafkaException:
        return False
    return bool(partitions) and all(partition.leader >= 0 for partition in partitions.values())


def required_partition_count(
    consumer: Consumer, topic: str, timeout: float, operation: Operation = Operation.READ
) -> int:
    """The number of partitions of one of the coordinator's topics; ``operation`` is what the client does there.

    Raises:
        RequestTimedOut: no broker answers within ``timeout`` seconds.
        CoordinatorNotAvailable: the topic does not exist, or the brokers do not show it (:class:`NotAuthorized`).
    """

    def query(remaining: float) -> int:
        metadata = consumer.list_topics(topic, timeout=remaining).topics[topic]
        if metadata.error is not None and metadata.error.code() in NO_LEADER_YET:
            raise KafkaException(metadata.error)
        if is_refusal(metadata.error):
            raise NotAuthorized(not_allowed(operation, topic))
        return 0 if metadata.error is not None else len(metadata.partitions)

    with waiting_for(KAFKA, timeout):
        count = _query_with_retries(f"the partitions of topic {topic!r}", query, timeout)
    if count == 0:
        raise TopicNotFound(
            f"topic {topic!r} does not exist: is the coordinator running, and is the topic prefix correct?"
        )
    return count


def end_offset(consumer: Consumer, topic: str, partition: int, timeout: float) -> int:
    """The offset of the next record to be appended. Raises as :func:`required_partition_count`, and
    UNKNOWN_TOPIC_OR_PARTITION; ``timeout`` in seconds."""
    return _watermarks(consumer, topic, partition, timeout)[1]


def beginning_offset(consumer: Consumer, topic: str, partition: int, timeout: float) -> int:
    """The lowest offset in the log. Raises and waits as :func:`end_offset`."""
    return _watermarks(consumer, topic, partition, timeout)[0]


def _watermarks(consumer: Consumer, topic: str, partition: int, timeout: float) -> tuple[int, int]:
    def query(remaining: float) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=remaining)

    return _query_with_retries(f"the offsets of {topic}-{partition}", query, timeout)


def _query_with_retries(what: str, query: Callable[[float], T], timeout: float) -> T:
    """The result of ``query(seconds left)``; retries while a partition has no leader."""
    deadline = time.monotonic() + timeout
    while True:
        remaining = deadline - time.monotonic()
        try:
            return query(max(0.0, remaining))
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.code() not in NO_LEADER_YET or remaining <= _NO_LEADER_PAUSE_SECONDS:
                raise _query_failure(what, error, timeout) from failure
        time.sleep(_NO_LEADER_PAUSE_SECONDS)


def no_answer(what: str, error: KafkaError, timeout: float) -> RequestTimedOut:
    """The exception for a metadata query that no broker answered within ``timeout`` seconds."""
    reason = "" if error.code() in NO_ANSWER else f": {error.str()}"
    return RequestTimedOut(f"no broker reported {what} within {timeout:g} s{reason}")


def _query_failure(what: str, error: KafkaError, timeout: float) -> CoordinatorError:
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
        return coordinator_error(Error.UNKNOWN_TOPIC_OR_PARTITION, f"{what}: {error.str()}")
    return no_answer(what, error, timeout)
