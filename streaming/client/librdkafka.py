"""How the clients make their librdkafka producer and consumers, and ask for metadata."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_logic.errors import Error
from streaming.client.errors import (
    CoordinatorError,
    CoordinatorNotAvailable,
    RequestTimedOut,
    coordinator_error,
)

LibrdkafkaConfig = Mapping[str, str | int | float | bool]

_NO_LEADER_YET = frozenset({KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION})
"""What a partition answers just after its topic was made, or while its leader moves."""
_NO_LEADER_PAUSE_SECONDS = 0.1

T = TypeVar("T")

_LIBRDKAFKA_LOGGER = logging.getLogger("streaming.client.librdkafka")


def new_consumer(
    bootstrap_servers: str, client_id: str, extra: LibrdkafkaConfig, settings: LibrdkafkaConfig
) -> Consumer:
    """A consumer that is assigned its partitions by hand and is no member of any group of the broker's.

    ``extra`` is the user's configuration (security and the like); ``settings`` win over it.
    """
    config: dict[str, Any] = {
        **extra,
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        # librdkafka insists on a group id. Without a subscription or a commit it never uses it.
        "group.id": client_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Small requests and answers one at a time: Nagle's algorithm would hold each back for an ACK.
        "socket.nagle.disable": True,
        **settings,
    }
    return Consumer(config, logger=_LIBRDKAFKA_LOGGER)


def producer_config(bootstrap_servers: str, client_id: str, extra: LibrdkafkaConfig) -> dict[str, Any]:
    """The configuration of a producer for requests: nothing waits for company, nothing is written twice."""
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
    """The configuration of a client that only asks about the cluster.

    It logs nothing: nobody polls it between two questions, and what goes wrong with a question is raised.
    """
    return {**extra, "bootstrap.servers": bootstrap_servers, "client.id": client_id, "log_level": 0}


def required_partition_count(consumer: Consumer, topic: str, timeout: float) -> int:
    """How many partitions one of the coordinator's topics has. ``timeout`` in seconds.

    Raises:
        RequestTimedOut: no broker answers.
        CoordinatorNotAvailable: there is no such topic.
    """

    def ask(remaining: float) -> int:
        metadata = consumer.list_topics(topic, timeout=remaining).topics[topic]
        if metadata.error is not None and metadata.error.code() in _NO_LEADER_YET:
            raise KafkaException(metadata.error)
        return 0 if metadata.error is not None else len(metadata.partitions)

    count = _told(f"the partitions of topic {topic!r}", ask, timeout)
    if count == 0:
        raise CoordinatorNotAvailable(
            f"topic {topic!r} does not exist: has the coordinator been started, with this topic prefix?"
        )
    return count


def end_offset(consumer: Consumer, topic: str, partition: int, timeout: float) -> int:
    """The offset that the next record of the partition will have, asked of the broker now."""
    return _watermarks(consumer, topic, partition, timeout)[1]


def beginning_offset(consumer: Consumer, topic: str, partition: int, timeout: float) -> int:
    """The lowest offset that the log still has, asked of the broker now."""
    return _watermarks(consumer, topic, partition, timeout)[0]


def _watermarks(consumer: Consumer, topic: str, partition: int, timeout: float) -> tuple[int, int]:
    def ask(remaining: float) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=remaining)

    return _told(f"the offsets of {topic}-{partition}", ask, timeout)


def _told(what: str, ask: Callable[[float], T], timeout: float) -> T:
    """What ``ask(seconds left)`` returns; it is asked again while a partition has no leader to answer."""
    deadline = time.monotonic() + timeout
    while True:
        remaining = deadline - time.monotonic()
        try:
            return ask(max(0.0, remaining))
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.code() not in _NO_LEADER_YET or remaining <= _NO_LEADER_PAUSE_SECONDS:
                raise _not_told(what, error, timeout) from failure
        time.sleep(_NO_LEADER_PAUSE_SECONDS)


def _not_told(what: str, error: KafkaError, timeout: float) -> CoordinatorError:
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
        return coordinator_error(Error.UNKNOWN_TOPIC_OR_PARTITION, f"{what}: {error.str()}")
    return RequestTimedOut(f"no broker told {what} within {timeout:g} s: {error.str()}")
