"""Appends wake events to the requests.

A wake event is a deadline check that no group has asked for: its value is that of a check, and it has no key. So every
release that knows deadline checks takes it for one of a group that does not exist, and does nothing.
"""

import logging
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.client.librdkafka import producer_config
from streaming.contract.errors import CannotRun
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.wake_events.schedule import REPEAT_SECONDS

log = logging.getLogger(__name__)

CLIENT_ID = "group-coordinator-wake-events"

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
            # One that is not appended by then is repeated.
            "message.timeout.ms": int(REPEAT_SECONDS * 1000),
            # Failures reach on_delivery; an outage would be logged by each of the job's clients.
            "log_level": 0,
            "error_cb": lambda _: None,
        }
        self._producer = Producer(settings)
        self._topic = requests_topic
        self._appended: SimpleQueue[Place] = SimpleQueue()

    def append(self) -> None:
        """Append a wake event, and return before the brokers have it. Without their answer it is lost."""
        self._produce(self._note)

    def append_first(self) -> None:
        """Append a wake event, and wait until the brokers have it, or until it would have to be repeated.

        Raises:
            CannotRun: this job may not append to the topic.
        """
        errors: list[KafkaError | None] = []
        self._produce(lambda error, _: errors.append(error))
        self._producer.flush(REPEAT_SECONDS)
        if any(error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED for error in errors):
            raise CannotRun(
                f"the job may not append to {self._topic}, so it would keep no deadline: it needs the right Write on "
                'that topic (see "ACLs for each role" in docs/security.md)'
            )

    def newest_place(self) -> Place | None:
        """Where the newest wake event of :meth:`append` was appended; None if none was since the last call."""
        self._producer.poll(0)
        place = None
        try:
            while True:
                place = self._appended.get_nowait()
        except Empty:
            return place

    def _produce(self, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        try:
            self._producer.produce(self._topic, value=DEADLINE_CHECK, on_delivery=on_delivery)
        except (BufferError, KafkaException) as failure:
            log.warning("a wake event cannot be appended, and will be repeated: %s", failure)

    def _note(self, error: KafkaError | None, record: Message) -> None:
        partition, offset = record.partition(), record.offset()
        if error is None and partition is not None and offset is not None:
            self._appended.put((partition, offset))
