"""An idempotent producer that starts again after a fatal error.

A fatal error ends an idempotent producer of librdkafka for good: for example, it may not write, or the broker does not
know its sequence numbers. Records in its queue fail; for those that it has sent, it still waits for the broker. A new
producer starts once all of them are settled, so records keep their order.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

log = logging.getLogger(__name__)


class RestartingProducer:
    """A producer with librdkafka's ``settings``, for any thread. One thread calls :meth:`poll` often.

    pause_seconds: the time from a fatal error to the next producer, at least.
    """

    def __init__(self, settings: Mapping[str, Any], pause_seconds: float) -> None:
        self.failure: str | None = None
        """The fatal error of the present producer."""
        self._settings = dict(settings)
        self._pause_seconds = pause_seconds
        self._failed_at = 0.0
        self._producer = Producer(self._settings)

    def produce(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        partition: int,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        """Pass a record to the producer. ``on_delivery`` is called by :meth:`poll`.

        Raises BufferError, and KafkaException, also after a fatal error.
        """
        self._producer.produce(topic, key=key, value=value, partition=partition, on_delivery=on_delivery)

    def poll(self, seconds: float = 0.0) -> None:
        """Wait so long for deliveries and call their callbacks; start again if it is time to after a fatal error."""
        try:
            self._producer.poll(seconds)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if not error.fatal():
                raise
            self.failure, self._failed_at = error.str(), time.monotonic()
            log.error("%s: writing nothing until a new producer starts: %s", self._settings["client.id"], self.failure)
        is_due = self.failure is not None and time.monotonic() - self._failed_at >= self._pause_seconds
        if is_due and not len(self._producer):
            self._producer, self.failure = Producer(self._settings), None
            log.warning("%s: writing again, with a new producer", self._settings["client.id"])

    def flush(self, seconds: float) -> None:
        """Wait until nothing is outstanding, at most so long."""
        # A fatal error leaves nothing to wait for.
        with suppress(KafkaException):
            self._producer.flush(seconds)
