"""Sends requests through one topic and receives answers through another, matched by correlation id.

Any thread may send. One reader thread receives the answers and completes the futures. Callbacks of a future run on the
reader thread and must return quickly.

The requests of a group are appended in the order in which they were sent, whatever happens to the broker: an older
commit never lands behind a newer one. The producer is idempotent and never gives a request up: librdkafka may have sent
a request that it gives up, and the broker may still append it, behind later requests of the producer's next epoch. So a
request that was passed to the producer stays there until the broker has appended or rejected it. While a broker
acknowledges nothing, further requests for its partitions are not passed to the producer at all.
"""

import logging
import threading
import time
import uuid
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from coordinator_logic import messages
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from coordinator_logic.partitioning import partition_for
from streaming.client.announced_epoch import announced_epoch
from streaming.client.epoch_fence import EpochFence
from streaming.client.errors import (
    CoordinatorError,
    CoordinatorNotAvailable,
    NotAuthorized,
    RequestTimedOut,
    RequestTooLarge,
    ResponseTimedOut,
)
from streaming.client.librdkafka import (
    LibrdkafkaConfig,
    end_offset,
    new_consumer,
    producer_config,
    required_partition_count,
)
from streaming.client.request_producer import TOO_LARGE, RequestProducer
from streaming.client.restarting_producer import Headers
from streaming.contract.identity import signed
from streaming.contract.records import RecordDecoder
from streaming.contract.rights.refusals import is_refusal, not_allowed, reason_of
from streaming.contract.rights.table import Operation
from streaming.contract.topics import CAN_WAIT, TopicNames

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
"""How long the reader waits for an answer before it checks for timeouts, failed deliveries and :meth:`close`.

An answer wakes it at once.
"""

EPOCH_LIMIT_SECONDS = 3.0
"""The limit of each request that looks for the active job's epoch; answers of other epochs wait for it."""

UNLIMITED = 0
"""librdkafka's value for no ``message.timeout.ms``."""

_OUTCOME_UNKNOWN = frozenset(
    {KafkaError._FATAL, KafkaError._PURGE_INFLIGHT, KafkaError._TRANSPORT, KafkaError._TIMED_OUT}
)
"""With these, librdkafka gives up a request that it has sent."""

_decode_response = msgspec.json.Decoder(ResponseEnvelope).decode
_encode = msgspec.json.Encoder().encode


class Sender(NamedTuple):
    """The client on whose behalf a request is sent, as in :class:`RequestEnvelope`."""

    client_id: str
    client_host: str
    principal: str | None = None


class _Pending:
    """A request whose answer is outstanding. ``timeout`` in seconds; ``is_sent``: whether the producer has it."""

    __slots__ = ("appended", "deadline", "future", "is_sent", "on_appended", "request", "timeout")

    def __init__(self, request: str, timeout: float, on_appended: Callable[[], None] | None) -> None:
        self.request = request
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout
        self.appended = False
        self.is_sent = True
        self.on_appended = on_appended
        self.future: Future[ResponseEnvelope] = Future()

    def complete(self, answer: ResponseEnvelope) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(answer)

    def fail(self, failure: CoordinatorError) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(failure)


def headers_of(body: messages.Message | Mapping[str, Any]) -> Headers:
    """The headers of a request."""
    return [(CAN_WAIT, b"")] if isinstance(body, messages.Message) and body.can_wait else []


class RequestReply:
    """The request topic and the response topic as one channel. Safe to share between threads.

    client_id, client_host, principal: the default sender of requests.
    config: librdkafka settings for both Kafka clients.
    connect_timeout: seconds for each metadata query of the constructor.
    stall_timeout: seconds without an acknowledgement of a partition's oldest request, after which further requests for
        that partition are not sent: they fail once they have waited as long. ``message.timeout.ms`` of ``config`` has
        no effect. After a fatal error of the producer, a new one starts as much later.
    identity_key: the key that signs the sender of every request, see :mod:`streaming.contract.identity`.
    on_answer: called on the reader thread with each answer to an outstanding request, before its future completes.

    ``unmatched_answers`` counts answers to no outstanding request: late ones, and duplicates from the job's
    at-least-once sink.

    The constructor raises CoordinatorNotAvailable if a topic does not exist or no broker answers.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: TopicNames,
        client_id: str,
        client_host: str,
        config: LibrdkafkaConfig,
        connect_timeout: float,
        stall_timeout: float,
        identity_key: bytes | None = None,
        principal: str | None = None,
        on_answer: Callable[[ResponseEnvelope], object] = lambda _answer: None,
    ) -> None:
        self._on_answer = on_answer
        self.unmatched_answers = 0
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._decoder = RecordDecoder(topics.responses, "response", _decode_response)
        look = (bootstrap_servers, topics.coordinators, client_id, config, EPOCH_LIMIT_SECONDS)
        self._fence = EpochFence(partial(announced_epoch, *look))
        self._sender = Sender(client_id, client_host, principal)
        self._identity_key = identity_key
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._unsent: deque[tuple[str, str, BufferError | KafkaException]] = deque()
        """Requests that a producer has refused after a fatal error: correlation id, request and error."""
        self._stall_timeout = stall_timeout
        # By partition: the requests that the producer has, oldest first, each with the time when it got it.
        self._unacknowledged: dict[int, OrderedDict[str, float]] = defaultdict(OrderedDict)
        self._closed = False
        # Created first: an idempotent producer needs half a second before it may send.
        settings = producer_config(bootstrap_servers, client_id, config)
        settings.pop("delivery.timeout.ms", None)
        self._producer = RequestProducer(settings | {"message.timeout.ms": UNLIMITED}, stall_timeout, topics.requests)
        self._consumer = new_consumer(bootstrap_servers, client_id, config, {"auto.offset.reset": "earliest"})
        try:
            self._request_partitions = required_partition_count(
                self._consumer, topics.requests, connect_timeout, Operation.WRITE
            )
            self._reply_partition = self._assign_reply_partition(connect_timeout)
        except RequestTimedOut as failure:
            self._consumer.close()
            raise CoordinatorNotAvailable(
                f"Kafka at {bootstrap_servers} does not answer: {failure.message}"
            ) from failure
        except BaseException:
            self._consumer.close()
            raise
        self._reader = threading.Thread(target=self._read_answers, name=f"{client_id}-answers", daemon=True)
        self._reader.start()

    def _assign_reply_partition(self, timeout: float) -> int:
        """Choose a random partition of the response topic, and read it from its present end."""
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
        """Append a request event to the request topic; returns the future answer, which may carry an error code.

        timeout: seconds until the future fails without an answer. Whoever does not want the answer any more cancels
            the future; the request itself cannot be taken back.
        sender: the client on whose behalf the request is sent, by default this one.
        on_appended: called on the reader thread once the request is in the log. The coordinator then executes it.

        The future raises:
            ResponseTimedOut: the request is in the log, but no answer came in time.
            RequestTimedOut: the broker has not acknowledged the request in time; it may still append it.
            RequestTooLarge: the request exceeds the size that the topic allows.
            CoordinatorNotAvailable: the request was not sent, the broker rejected it, or the client was closed.

        Raises CoordinatorNotAvailable if the client is closed already.
        """
        envelope = self._envelope(group_id, api, version, body, sender or self._sender)
        substitute = self._substitute(envelope, group_id, body)
        correlation_id, value = envelope.correlation_id, _encode(envelope)
        pending = _Pending(f"{api} for group {group_id!r}", timeout, on_appended)
        partition = partition_for(group_id, self._request_partitions)
        self._register(correlation_id, pending, partition)
        pending.future.add_done_callback(lambda done: self._pop(correlation_id) if done.cancelled() else None)
        if pending.is_sent:
            self._produce(correlation_id, pending, partition, group_id.encode(), value, substitute, headers_of(body))
        return pending.future

    def _envelope(
        self, group_id: str, api: str, version: int, body: messages.Message | Mapping[str, Any], sender: Sender
    ) -> RequestEnvelope:
        envelope = RequestEnvelope(
            api=api,
            version=version,
            correlation_id=str(uuid.uuid4()),
            reply_partition=self._reply_partition,
            body=msgspec.Raw(_encode(body)),
            client_id=sender.client_id,
            client_host=sender.client_host,
            principal=sender.principal,
        )
        return envelope if self._identity_key is None else signed(envelope, group_id, self._identity_key)

    def _substitute(
        self, envelope: RequestEnvelope, group_id: str, body: messages.Message | Mapping[str, Any]
    ) -> bytes | None:
        """What is sent in place of a request that proves too large; its answer is the request's."""
        small = messages.small_substitute(body)
        if small is None:
            return None
        substitute = msgspec.structs.replace(envelope, body=msgspec.Raw(_encode(small)))
        return _encode(substitute if self._identity_key is None else signed(substitute, group_id, self._identity_key))

    def _register(self, correlation_id: str, pending: _Pending, partition: int) -> None:
        """Await an answer from now on. While the partition's broker acknowledges nothing, the request is not sent.

        Raises CoordinatorNotAvailable if the client is closed.
        """
        with self._lock:
            if self._closed:
                raise CoordinatorNotAvailable(f"{pending.request} was not sent: the client is closed")
            self._pending[correlation_id] = pending
            unacknowledged = self._unacknowledged[partition]
            now = time.monotonic()
            if now - next(iter(unacknowledged.values()), now) >= self._stall_timeout:
                pending.is_sent = False
                pending.deadline = now + min(pending.timeout, self._stall_timeout)
            else:
                unacknowledged[correlation_id] = now

    def _produce(
        self,
        correlation_id: str,
        pending: _Pending,
        partition: int,
        key: bytes,
        value: bytes,
        substitute: bytes | None,
        headers: Headers,
    ) -> None:
        try:
            self._producer.produce(
                self._topics.requests,
                key=key,
                value=value,
                partition=partition,
                on_settled=partial(self._on_delivery, correlation_id, partition),
                substitute=substitute,
                headers=headers,
            )
        except (BufferError, KafkaException) as failure:
            with self._lock:
                del self._unacknowledged[partition][correlation_id]
            error = failure.args[0]
            if isinstance(error, KafkaError) and error.code() == KafkaError._FATAL:
                # Only the reader's next poll of the producer tells what it has died of.
                self._unsent.append((correlation_id, pending.request, failure))
            else:
                self._fail(correlation_id, _not_sent(pending.request, failure))

    @property
    def failure(self) -> str | None:
        """Why no request can be sent: a fatal error of the producer; None while requests can be sent."""
        return self._producer.failure

    def is_alive(self) -> bool:
        """Whether the thread runs that receives the answers."""
        return self._reader.is_alive()

    @property
    def unreadable_answers(self) -> int:
        """How many records were skipped because they are no answers."""
        return self._decoder.skipped

    @property
    def outdated_answers(self) -> int:
        """How many answers were dropped because another job is active than the one that gave them."""
        return self._fence.outdated

    @property
    def outstanding(self) -> int:
        """How many requests await an answer."""
        return len(self._pending)

    def close(self) -> None:
        """End the reader thread. Outstanding requests fail with CoordinatorNotAvailable."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._reader.join()
        self._consumer.close()
        self._producer.flush(_POLL_SECONDS)
        with self._lock:
            outstanding = list(self._pending.values())
            self._pending.clear()
        for pending in outstanding:
            pending.fail(CoordinatorNotAvailable(f"{pending.request} has no answer: the client was closed"))

    def _read_answers(self) -> None:
        next_timeout_check = 0.0
        while not self._closed:
            try:
                record = self._consumer.poll(_POLL_SECONDS)
                if record is not None:
                    self._on_record(record)
                for answer in self._fence.released():
                    self._deliver(answer)
                self._producer.poll()
                self._fail_unsent()
            except Exception:
                # Without this thread no request would ever be answered or time out.
                log.exception("an answer in topic %s could not be processed", self._topics.responses)
            # Not after every answer: each check visits all outstanding requests.
            if time.monotonic() >= next_timeout_check:
                self._expire_requests()
                next_timeout_check = time.monotonic() + _POLL_SECONDS

    def _on_record(self, record: Message) -> None:
        error = record.error()
        if error is not None:
            # librdkafka retries automatically, and every request has a timeout.
            topic = self._topics.responses
            log.warning("topic %s cannot be read, retrying: %s", topic, reason_of(error, Operation.READ, topic))
            return
        if record.value() is None:
            self._decoder.skip(record, "it has no value")
        answer = self._decoder.read(record)
        if answer is None:
            return
        if self._fence.admits(answer):
            self._deliver(answer)

    def _deliver(self, answer: ResponseEnvelope) -> None:
        pending = self._pop(answer.correlation_id)
        if pending is None:
            self.unmatched_answers += 1
            return
        self._on_answer(answer)
        pending.complete(answer)

    def _on_delivery(self, correlation_id: str, partition: int, error: KafkaError | None) -> None:
        with self._lock:
            del self._unacknowledged[partition][correlation_id]
            pending = self._pending.get(correlation_id)
        if pending is None:
            return
        if error is not None:
            self._fail(correlation_id, self._delivery_failure(pending.request, error))
            return
        pending.appended = True
        if pending.on_appended is not None:
            pending.on_appended()

    def _delivery_failure(self, request: str, error: KafkaError) -> CoordinatorError:
        if is_refusal(error):
            return NotAuthorized(f"{request} was not sent: {not_allowed(Operation.WRITE, self._topics.requests)}")
        if error.code() in TOO_LARGE:
            return RequestTooLarge(f"the broker rejected {request}: {error.str()}")
        if error.code() in _OUTCOME_UNKNOWN:
            return RequestTimedOut(f"the broker has not acknowledged {request}: {error.str()}; it may yet be executed")
        if error.code() == KafkaError._PURGE_QUEUE and self.failure is not None:
            return CoordinatorNotAvailable(f"{request} was not sent: {self.failure}")
        # Negative codes are librdkafka's own.
        outcome = "the broker rejected" if error.code() > 0 else "the producer has not sent"
        return CoordinatorNotAvailable(f"{outcome} {request}: {error.str()}")

    def _fail_unsent(self) -> None:
        while self._unsent:
            correlation_id, request, failure = self._unsent.popleft()
            why = CoordinatorNotAvailable(f"{request} was not sent: {self.failure}") if self.failure else None
            self._fail(correlation_id, why or _not_sent(request, failure))

    def _expire_requests(self) -> None:
        now = time.monotonic()
        with self._lock:
            overdue = [key for key, pending in self._pending.items() if pending.deadline <= now]
            expired = [self._pending.pop(key) for key in overdue]
        for pending in expired:
            pending.fail(self._timeout_failure(pending))

    def _timeout_failure(self, pending: _Pending) -> CoordinatorError:
        within = f"within {pending.timeout:g} s"
        if not pending.is_sent:
            stall = f"for {self._stall_timeout:g} s Kafka at {self._bootstrap_servers} has acknowledged no request"
            return CoordinatorNotAvailable(f"{pending.request} was not sent: {stall}")
        if pending.appended:
            topic = self._topics.requests
            return ResponseTimedOut(
                f"{pending.request} is in topic {topic!r}, but the coordinator did not answer {within}"
            )
        return RequestTimedOut(
            f"Kafka at {self._bootstrap_servers} did not acknowledge {pending.request} {within}; it may yet be executed"
        )

    def _pop(self, correlation_id: str) -> _Pending | None:
        with self._lock:
            return self._pending.pop(correlation_id, None)

    def _fail(self, correlation_id: str, failure: CoordinatorError) -> None:
        pending = self._pop(correlation_id)
        if pending is not None:
            pending.fail(failure)


def _not_sent(request: str, failure: BufferError | KafkaException) -> CoordinatorError:
    error = failure.args[0]
    if isinstance(error, KafkaError) and error.code() in TOO_LARGE:
        return RequestTooLarge(f"{request} was not sent: {error.str()}")
    return CoordinatorNotAvailable(f"{request} was not sent: {failure}")
