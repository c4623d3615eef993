"""An idempotent producer that starts again after a fatal error, and when it is stuck.

A fatal error ends an idempotent producer of librdkafka for good: for example, it may not write, or the broker does not
know its sequence numbers. Records in its queue fail; for those that it has sent, it still waits for the broker. A new
producer starts once all of them are settled, so records keep their order.

A producer is stuck if no record is acknowledged although the brokers answer, whether its records wait or time out.
librdkafka 2.12 was so for good after a broker had been paused for 6 s: once in 200 runs with broken brokers. Its
records fail, and a new producer starts.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.client.librdkafka import has_leaders
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Operation

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
"""After so long without an acknowledgement, the producer looks whether the brokers answer, and again as much later.

After an outage, librdkafka waits up to 15 s until it connects again: the 10 s of reconnect.backoff.max.ms, and half.
"""

ANSWER_LIMIT_SECONDS = 2.0

CLUSTER_REFUSAL = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED).str()

Headers = Sequence[tuple[str, bytes]]

OnDelivery = Callable[[KafkaError | None, Message], None]


class RestartingProducer:
    """A producer with librdkafka's ``settings``, for any thread. One thread calls :meth:`poll` often.

    pause_seconds: the time from a fatal error to the next producer, at least.
    topic: the one that it will write, if that is known before.
    look_seconds: a producer is stuck if it has no acknowledgement for twice as long, and the brokers answer at the
        middle and at the end of that time.
    """

    def __init__(
        self, settings: Mapping[str, Any], pause_seconds: float, topic: str = "", *, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self.failure: str | None = None
        """The fatal error of the present producer, or that it is stuck."""
        self._settings = dict(settings)
        self._admin_settings = {**self._settings, "log_level": 0}
        self._admin_settings.pop("logger", None)
        self._pause_seconds = pause_seconds
        self._look_seconds = look_seconds
        self._next_producer_at = self._next_look_at = 0.0
        self._have_brokers_answered = self._gives_up = False
        self._awaits_acknowledgement = False
        """Whether a record was produced that was not acknowledged, and none that was sent since."""
        self._has_timed_out = False
        """Whether a record has failed since the last look because nobody acknowledged it in time."""
        self._topic = topic
        self._producer = Producer(self._settings)

    def produce(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        partition: int,
        on_delivery: OnDelivery,
        headers: Headers = (),
    ) -> None:
        """Pass a record to the producer. ``on_delivery`` is called by :meth:`poll`.

        Raises BufferError, and KafkaException, also after a fatal error and while the producer is stuck.
        """
        if self._gives_up:
            raise KafkaException(KafkaError(KafkaError._STATE, self.failure))
        self._topic = topic
        if not self._awaits_acknowledgement:
            self._await_acknowledgement()
        on_settled = partial(self._on_settled, on_delivery)
        self._producer.produce(
            topic, key=key, value=value, partition=partition, on_delivery=on_settled, headers=list(headers)
        )

    def poll(self, seconds: float = 0.0) -> None:
        """Wait so long for deliveries and call their callbacks; start again if it is time to after a fatal error."""
        try:
            self._producer.poll(seconds)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if not error.fatal():
                raise
            # Without Write on any topic, an idempotent producer is refused at its start, in other words.
            is_refused = is_refusal(error) or CLUSTER_REFUSAL in error.str()
            self._fail(not_allowed(Operation.WRITE, self._topic) if is_refused else error.str(), self._pause_seconds)
        if self.failure is None and self._is_stuck():
            self._gives_up = True
            self._fail("no record is acknowledged, though the brokers answer", 0.0)
        if self._gives_up:
            self._producer.purge(blocking=False)
        is_due = self.failure is not None and time.monotonic() >= self._next_producer_at
        if is_due and not len(self._producer):
            self._producer, self.failure, self._gives_up = Producer(self._settings), None, False
            log.warning("%s: writing again, with a new producer", self._settings["client.id"])

    def flush(self, seconds: float) -> None:
        """Wait until nothing is outstanding, at most so long."""
        # A fatal error leaves nothing to wait for.
        with suppress(KafkaException):
            self._producer.flush(seconds)

    def _on_settled(self, on_delivery: OnDelivery, error: KafkaError | None, record: Message) -> None:
        # Otherwise a producer that is stuck would seem to go on with each record that it fails to deliver.
        if error is not None and error.code() == KafkaError._MSG_TIMED_OUT:
            self._has_timed_out = True
        else:
            self._await_acknowledgement()
        on_delivery(error, record)

    def _await_acknowledgement(self) -> None:
        self._awaits_acknowledgement, self._has_timed_out = True, False
        self._next_look_at, self._have_brokers_answered = time.monotonic() + self._look_seconds, False

    def _fail(self, failure: str, pause_seconds: float) -> None:
        self.failure, self._next_producer_at = failure, time.monotonic() + pause_seconds
        log.error("%s: writing nothing until a new producer starts: %s", self._settings["client.id"], failure)

    def _is_stuck(self) -> bool:
        if not self._awaits_acknowledgement or time.monotonic() < self._next_look_at:
            return False
        self._awaits_acknowledgement = bool(len(self._producer)) or self._has_timed_out
        if not self._awaits_acknowledgement:
            return False
        had_answered, self._has_timed_out = self._have_brokers_answered, False
        self._have_brokers_answered = has_leaders(self._admin_settings, self._topic, ANSWER_LIMIT_SECONDS)
        self._next_look_at = time.monotonic() + self._look_seconds
        return had_answered and self._have_brokers_answered
