"""Writes records of rebalances, so that each is in the topic exactly once for readers of committed records."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from streaming.client.errors import CoordinatorNotAvailable, NotAuthorized
from streaming.client.librdkafka import LibrdkafkaConfig, producer_config
from streaming.contract.errors import CannotRun
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Kind, Operation
from streaming.contract.topics import BATCH_OVERHEAD_BYTES, MAX_ROW_BYTES
from streaming.explain.publishing.records import PublishedRebalance, encoded

TRANSACTION_SECONDS = 60.0
"""The longest outage of the brokers that a transaction survives."""

NO_LONGER = frozenset({KafkaError._FENCED, KafkaError._FATAL})
"""The errors after which a producer can do nothing more."""


class Publisher:
    """Appends records to a topic. Of all processes that do so, the one that was started last may write.

    Its transactional id is the name of the topic: the brokers refuse what an older process writes from then on. So what
    the topic has after the constructor is all that others have published.

    Args:
        config: librdkafka's configuration, with ``bootstrap.servers``.
        topic: The topic, which exists.
        timeout: The limit of each answer of the brokers, in seconds.

    Raises:
        CoordinatorNotAvailable: the brokers do not answer.
    """

    def __init__(self, config: LibrdkafkaConfig, topic: str, timeout: float) -> None:
        settings: dict[str, Any] = {
            **producer_config(str(config["bootstrap.servers"]), topic, config),
            "transactional.id": topic,
            "transaction.timeout.ms": round(TRANSACTION_SECONDS * 1000),
            "message.max.bytes": MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES,
        }
        self._topic = topic
        self._timeout = timeout
        self._producer = Producer(settings)
        self._finish(self._producer.init_transactions)

    def publish(self, records: Iterable[PublishedRebalance]) -> None:
        """Append records in one transaction.

        Raises:
            CannotRun: another process has taken over.
            CoordinatorNotAvailable: the transaction has failed; a new publisher goes on from what the topic has then.
        """
        try:
            self._producer.begin_transaction()
            for record in records:
                self._producer.produce(self._topic, key=record.group_id.encode(), value=encoded(record))
                self._producer.poll(0)
        except (BufferError, KafkaException) as failure:
            raise self._meaning(failure) from failure
        self._finish(self._producer.commit_transaction)

    def _finish(self, step: Callable[[float], None]) -> None:
        """Call a step of a transaction, again as long as its failure may pass."""
        deadline = time.monotonic() + TRANSACTION_SECONDS
        while True:
            try:
                step(self._timeout)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable() or time.monotonic() > deadline:
                    raise self._meaning(failure) from failure

    def _meaning(self, failure: Exception) -> Exception:
        error = failure.args[0] if isinstance(failure, KafkaException) else None
        if error is not None and is_refusal(error):
            is_topic = error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
            kind = Kind.TOPIC if is_topic else Kind.TRANSACTIONAL_ID
            return NotAuthorized(not_allowed(Operation.WRITE, self._topic, kind))
        if error is not None and (error.fatal() or error.code() in NO_LONGER):
            # An overtaken producer learns it in several ways.
            return CannotRun(
                f"this process may no longer publish to {self._topic}: if no other one has been started, see what the "
                f"brokers say: {error.str()}"
            )
        return CoordinatorNotAvailable(f"nothing can be published to {self._topic!r}: {failure}")
