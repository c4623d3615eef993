"""Appends wake events to the requests.

A wake event is a deadline check that no group has asked for: its value is that of a check, and it has no key. So every
release that knows deadline checks takes it for one of a group that does not exist, and does nothing.
"""

import logging
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.client.librdkafka import producer_config
from streaming.contract.errors import CannotRun
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Operation
from streaming.job.group_batch.steps import DEADLINE_CHECK

log = logging.getLogger(__name__)

CLIENT_ID = "group-coordinator-wake-events"

APPEND_LIMIT_SECONDS = 2.0
"""A wake event that the brokers have not taken by then counts as failed."""

Place = tuple[int, int]
"""A partition of the requests, and an offset in it."""


class WakeEvents:
    """Appends wake events to one topic of requests. Any thread may use it.

    config: librdkafka's settings, with ``bootstrap.servers``.
    """

    def __init__(self, config: Mapping[str, Any], requests_topic: str) -> None:
        settings = {
            **producer_config(config["bootstrap.servers"], CLIENT_ID, config),
            # A wake event may come twice. An idempotent producer would end for good with a fatal error.
            "enable.idempotence": False,
            "message.timeout.ms": int(APPEND_LIMIT_SECONDS * 1000),
            # Failures reach on_delivery; an outage would be logged by each of the job's clients.
            "log_level": 0,
            "error_cb": lambda _: None,
        }
        self._producer = Producer(settings)
        self._topic = requests_topic
        self._delivered: SimpleQueue[Place | None] = SimpleQueue()

    def append(self) -> None:
        """Append a wake event, and return before the brokers have it; :meth:`deliveries` tells whether they do."""
        self._produce(self._note)

    def append_first(self) -> None:
        """Append a wake event, and wait until the brokers have taken it or not.

        Raises:
            CannotRun: this job may not append to the topic.
        """
        errors: list[KafkaError | None] = []
        self._produce(lambda error, _: errors.append(error))
        self._producer.flush(APPEND_LIMIT_SECONDS + 1.0)
        if any(map(is_refusal, errors)):
            raise CannotRun(f"the job would keep no deadline: {not_allowed(Operation.WRITE, self._topic)}")

    def deliveries(self) -> list[Place | None]:
        """Where wake events of :meth:`append` are since the last call, None for one that could not be appended."""
        self._producer.poll(0)
        return [self._delivered.get() for _ in range(self._delivered.qsize())]

    def _produce(self, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        try:
            self._producer.produce(self._topic, value=DEADLINE_CHECK, on_delivery=on_delivery)
        except (BufferError, KafkaException) as failure:
            log.warning("a wake event cannot be appended, and will be repeated: %s", failure)
            self._delivered.put(None)

    def _note(self, error: KafkaError | None, record: Message) -> None:
        partition, offset = record.partition(), record.offset()
        if error is not None or partition is None or offset is None:
            self._delivered.put(None)
        else:
            self._delivered.put((partition, offset))
