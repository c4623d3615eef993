"""Passes requests to producers: small ones as they are, large ones compressed, each group's in their order.

A topic limits the compressed size of a record (``max.message.bytes``, by default 1 MB). As JSON, the bytes and control
characters of a request take more room than on Kafka's wire; zstd undoes that. So what a broker's coordinator can store
reaches the log. To compress each heartbeat would cost sender, broker and job more than the request itself.

librdkafka compresses all records of a producer or none, so there are two. A request waits as long as the other producer
has an earlier one of its group.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from streaming.client.restarting_producer import Headers, RestartingProducer
from streaming.contract.topics import BATCH_OVERHEAD_BYTES, LONGEST_GROUP_ID_BYTES, MAX_REQUEST_JSON_BYTES

LARGE_BYTES = 512 * 1024
"""Requests beyond this size are compressed: half of a topic's default limit."""

MAX_MESSAGE_BYTES = MAX_REQUEST_JSON_BYTES + LONGEST_GROUP_ID_BYTES + BATCH_OVERHEAD_BYTES
"""What librdkafka refuses at once: more than a job reads by default. It counts the bytes before compression."""


TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})

OnSettled = Callable[[KafkaError | None], None]
"""Receives why a request is not in the log, None if it is."""


class _Request(NamedTuple):
    topic: str
    key: bytes
    value: bytes
    partition: int
    on_settled: OnSettled
    substitute: bytes | None
    headers: Headers

    @property
    def is_large(self) -> bool:
        return len(self.value) > LARGE_BYTES

    def smaller(self) -> "_Request":
        """The request with its substitute."""
        assert self.substitute is not None
        return self._replace(value=self.substitute, substitute=None)


class _Lane:
    """The requests of a group that are not settled: those that a producer has, and those that wait for it."""

    __slots__ = ("has_large", "in_flight", "waiting")

    def __init__(self) -> None:
        self.in_flight = 0
        self.has_large = False
        self.waiting: deque[_Request] = deque()

    def enter(self, request: _Request) -> bool:
        """Take a request in; False if it must wait for an earlier one."""
        if self.waiting or not self._may_pass(request):
            self.waiting.append(request)
            return False
        self._begin(request)
        return True

    def take_next(self) -> list[_Request]:
        """The requests that need not wait any more."""
        taken = []
        while self.waiting and self._may_pass(self.waiting[0]):
            taken.append(self.waiting.popleft())
            self._begin(taken[-1])
        return taken

    def _may_pass(self, request: _Request) -> bool:
        return not self.in_flight or self.has_large == request.is_large

    def _begin(self, request: _Request) -> None:
        self.in_flight += 1
        self.has_large = request.is_large


class RequestProducer:
    """A producer of requests with librdkafka's ``settings``, for any thread. One thread calls :meth:`poll` often.

    pause_seconds, topic: see :class:`RestartingProducer`.
    """

    def __init__(self, settings: Mapping[str, Any], pause_seconds: float, topic: str = "") -> None:
        self._settings = {"message.max.bytes": MAX_MESSAGE_BYTES, **settings}
        self._pause_seconds = pause_seconds
        self._topic = topic
        self._small = RestartingProducer(self._settings, pause_seconds, topic)
        self._large: RestartingProducer | None = None
        self._lock = threading.Lock()
        self._lanes: dict[bytes, _Lane] = {}

    @property
    def failure(self) -> str | None:
        """Why no request can be sent, see :attr:`RestartingProducer.failure`."""
        return self._small.failure or (None if self._large is None else self._large.failure)

    def produce(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        partition: int,
        on_settled: OnSettled,
        substitute: bytes | None = None,
        headers: Headers = (),
    ) -> None:
        """Pass a request to its producer, now or after earlier ones of its group.

        ``on_settled`` is called by :meth:`poll`. Raises as :meth:`RestartingProducer.produce` if the request need not
        wait; otherwise its failure is delivered. ``substitute`` takes the place of a value that is too large.
        """
        request = _Request(topic, key, value, partition, on_settled, substitute, headers)
        with self._lock:
            if not self._lanes.setdefault(key, _Lane()).enter(request):
                return
        try:
            self._pass_on(request)
        except (BufferError, KafkaException):
            self._settle(key)
            raise

    def poll(self) -> None:
        """Call the callbacks of deliveries, and start a producer again if it is time to after a fatal error."""
        self._small.poll()
        if self._large is not None:
            self._large.poll()

    def flush(self, seconds: float) -> None:
        """Wait until nothing is outstanding, at most so long for each producer."""
        self._small.flush(seconds)
        if self._large is not None:
            self._large.flush(seconds)

    def _pass_on(self, request: _Request) -> None:
        producer = self._large_producer() if request.is_large else self._small

        def delivered(error: KafkaError | None, _record: Message) -> None:
            if error is not None and error.code() in TOO_LARGE and request.substitute is not None:
                self._pass_on_late(request.smaller())
            else:
                self._end(request, error)

        try:
            producer.produce(request.topic, request.key, request.value, request.partition, delivered, request.headers)
        except KafkaException as failure:
            if failure.args[0].code() not in TOO_LARGE or request.substitute is None:
                raise
            self._pass_on(request.smaller())

    def _pass_on_late(self, request: _Request) -> None:
        """Pass on a request whose sender does not wait for it any more."""
        try:
            self._pass_on(request)
        except (BufferError, KafkaException) as failure:
            error = failure.args[0]
            is_known = isinstance(error, KafkaError)
            self._end(request, error if is_known else KafkaError(KafkaError._QUEUE_FULL, str(failure)))

    def _end(self, request: _Request, error: KafkaError | None) -> None:
        try:
            request.on_settled(error)
        finally:
            self._settle(request.key)

    def _large_producer(self) -> RestartingProducer:
        with self._lock:
            if self._large is None:
                settings = self._settings | {"compression.type": "zstd"}
                self._large = RestartingProducer(settings, self._pause_seconds, self._topic)
            return self._large

    def _settle(self, key: bytes) -> None:
        """A request of a group is settled: pass on those that waited for it."""
        with self._lock:
            lane = self._lanes[key]
            lane.in_flight -= 1
            next_ones = lane.take_next()
            if not lane.in_flight:
                del self._lanes[key]
        for request in next_ones:
            self._pass_on_late(request)
