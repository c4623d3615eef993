"""Requests out through one topic, answers in through another, matched by correlation id.

Any thread may send. One thread of this module reads the answers, and completes the futures: what is called when a
future completes runs on that thread, and must be quick.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from coordinator_logic import messages
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from coordinator_logic.partitioning import partition_for
from streaming.client.errors import (
    CoordinatorError,
    CoordinatorNotAvailable,
    RequestTimedOut,
    RequestTooLarge,
    Unanswered,
)
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    end_offset,
    new_consumer,
    producer_config,
    required_partition_count,
)
from streaming.topics import TopicNames

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
"""How long the reader waits for an answer before it looks for overdue requests, failed sends and close.

An answer that arrives wakes it at once.
"""


_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})

_decode_response = msgspec.json.Decoder(ResponseEnvelope).decode
_encode = msgspec.json.Encoder().encode


class Sender(NamedTuple):
    """For whom a request is sent: what its envelope says about that. See :class:`RequestEnvelope`."""

    client_id: str
    client_host: str
    principal: str | None = None


class _Pending:
    """A request that waits for its answer."""

    __slots__ = ("appended", "deadline", "future", "on_appended", "request", "timeout")

    def __init__(self, request: str, timeout: float, on_appended: Callable[[], None] | None) -> None:
        self.request = request
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout
        self.appended = False
        self.on_appended = on_appended
        self.future: Future[ResponseEnvelope] = Future()
        # The request is on its way to the log; nobody can take it back.
        self.future.set_running_or_notify_cancel()


class RequestReply:
    """The two topics as one channel: :meth:`send` a request, get a future of its answer.

    ``unclaimed_answers`` counts answers that nobody waited for (repeated ones too: the job's sink is
    at-least-once, and may send an answer again), ``unreadable_answers`` records that are no answers.

    ``delivery_timeout`` (s) is when the producer gives a request up that the broker has not taken: then it is not in
    the log, and will not be. None leaves that to librdkafka, or to ``config``.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: TopicNames,
        client_id: str,
        client_host: str,
        config: LibrdkafkaConfig,
        connect_timeout: float,
        delivery_timeout: float | None = None,
    ) -> None:
        self.unclaimed_answers = 0
        self.unreadable_answers = 0
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._sender = Sender(client_id, client_host)
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._closed = False
        # First, because it takes half a second until an idempotent producer may send.
        settings = producer_config(bootstrap_servers, client_id, config)
        if delivery_timeout is not None:
            settings["message.timeout.ms"] = round(delivery_timeout * 1000)
        self._producer = Producer(settings)
        self._consumer = new_consumer(bootstrap_servers, client_id, config, {"auto.offset.reset": "earliest"})
        try:
            self._request_partitions = required_partition_count(self._consumer, topics.requests, connect_timeout)
            self._reply_partition = self._assign_reply_partition(connect_timeout)
        except RequestTimedOut as failure:
            self._consumer.close()
            raise CoordinatorNotAvailable(f"Kafka at {bootstrap_servers}: {failure.message}") from failure
        except BaseException:
            self._consumer.close()
            raise
        self._reader = threading.Thread(target=self._read_answers, name=f"{client_id}-answers", daemon=True)
        self._reader.start()

    def _assign_reply_partition(self, timeout: float) -> int:
        """Choose a partition of the responses, and read it from where it ends now, before any request."""
        topic = self._topics.responses
        partition = uuid.uuid4().int % required_partition_count(self._consumer, topic, timeout)
        end = end_offset(self._consumer, topic, partition, timeout)
        self._consumer.assign([TopicPartition(topic, partition, end)])
        return partition

    def send(
        self,
        group_id: str,
        api: str,
        version: int,
        body: messages.Message | Mapping[str, Any],
        timeout: float,
        sender: Sender | None = None,
        on_appended: Callable[[], None] | None = None,
    ) -> Future[ResponseEnvelope]:
        """Append a request event for a group; the future has the answer, whatever error code it carries.

        The future fails with :class:`RequestTimedOut` after ``timeout`` seconds (:class:`Unanswered` if the request is
        in the log), with :class:`RequestTooLarge`, and with :class:`CoordinatorNotAvailable` when the broker does not
        take the request or the client is closed.

        ``sender`` is who asks, if not the client itself. ``on_appended`` is called on the reader's thread when the
        request is in the log: from then on it will be carried out.
        """
        sender = sender or self._sender
        correlation_id = str(uuid.uuid4())
        envelope = RequestEnvelope(
            api=api,
            version=version,
            correlation_id=correlation_id,
            reply_partition=self._reply_partition,
            body=msgspec.Raw(_encode(body)),
            client_id=sender.client_id,
            client_host=sender.client_host,
            principal=sender.principal,
        )
        pending = _Pending(f"{api} for group {group_id!r}", timeout, on_appended)
        with self._lock:
            if self._closed:
                raise CoordinatorNotAvailable(f"{pending.request} was not sent: the client is closed")
            self._pending[correlation_id] = pending
        try:
            self._producer.produce(
                self._topics.requests,
                key=group_id.encode(),
                value=_encode(envelope),
                partition=partition_for(group_id, self._request_partitions),
                on_delivery=lambda error, _record: self._on_delivery(correlation_id, error),
            )
        except BufferError as failure:
            self._fail(correlation_id, CoordinatorNotAvailable(f"{pending.request} could not be sent: {failure}"))
        except KafkaException as failure:
            self._fail(correlation_id, _not_taken(pending.request, failure.args[0]))
        return pending.future

    def close(self) -> None:
        """End the reader thread; requests that still wait fail."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._reader.join()
        self._consumer.close()
        self._producer.flush(_POLL_SECONDS)
        with self._lock:
            waiting = list(self._pending)
        for correlation_id in waiting:
            self._fail_closed(correlation_id)

    def _read_answers(self) -> None:
        look_for_overdue_at = 0.0
        while not self._closed:
            try:
                record = self._consumer.poll(_POLL_SECONDS)
                if record is not None:
                    self._on_record(record)
                self._producer.poll(0)
            except Exception:
                # If this thread ended, everybody would wait for ever.
                log.exception("reading %s", self._topics.responses)
            # Not with every answer: that would look at all requests that wait, once for each of them.
            if time.monotonic() >= look_for_overdue_at:
                self._expire_overdue()
                look_for_overdue_at = time.monotonic() + _POLL_SECONDS

    def _on_record(self, record: Message) -> None:
        error = record.error()
        if error is not None:
            # librdkafka goes on trying by itself; whoever waits has a timeout.
            log.warning("reading %s: %s", self._topics.responses, error.str())
            return
        try:
            answer = _decode_response(record.value() or b"")
        except (msgspec.DecodeError, UnicodeDecodeError) as failure:
            self.unreadable_answers += 1
            place = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
            log.warning("ignored a record that is no answer, %s: %s", place, failure)
            return
        pending = self._take(answer.correlation_id)
        if pending is None:
            self.unclaimed_answers += 1
            return
        pending.future.set_result(answer)

    def _on_delivery(self, correlation_id: str, error: KafkaError | None) -> None:
        with self._lock:
            pending = self._pending.get(correlation_id)
        if pending is None:
            return
        if error is not None:
            self._fail(correlation_id, _not_taken(pending.request, error))
            return
        pending.appended = True
        if pending.on_appended is not None:
            pending.on_appended()

    def _expire_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            overdue = [key for key, pending in self._pending.items() if pending.deadline <= now]
        for correlation_id in overdue:
            pending = self._take(correlation_id)
            if pending is not None:
                pending.future.set_exception(self._overdue(pending))

    def _overdue(self, pending: _Pending) -> CoordinatorError:
        within = f"within {pending.timeout:g} s"
        if pending.appended:
            topic = self._topics.requests
            return Unanswered(f"{pending.request} is in topic {topic!r}, but was not answered {within}")
        return RequestTimedOut(f"{pending.request} was not taken by the broker at {self._bootstrap_servers} {within}")

    def _take(self, correlation_id: str) -> _Pending | None:
        with self._lock:
            return self._pending.pop(correlation_id, None)

    def _fail(self, correlation_id: str, failure: CoordinatorError) -> None:
        pending = self._take(correlation_id)
        if pending is not None:
            pending.future.set_exception(failure)

    def _fail_closed(self, correlation_id: str) -> None:
        pending = self._take(correlation_id)
        if pending is not None:
            why = f"{pending.request} has no answer: the client was closed"
            pending.future.set_exception(CoordinatorNotAvailable(why))


def _not_taken(request: str, error: KafkaError) -> CoordinatorError:
    failure = RequestTooLarge if error.code() in _TOO_LARGE else CoordinatorNotAvailable
    return failure(f"{request} was not taken by the broker: {error.str()}")
