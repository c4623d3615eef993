"""The world of recorded clients in real time, and their network: JSON over the coordinator's topics."""

import heapq
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple, Self

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from coordinator_logic.apis import APIS
from coordinator_logic.messages import RequestBody, RequestEnvelope, ResponseEnvelope
from coordinator_logic.partitioning import partition_for
from streaming.client.librdkafka import end_offset, new_consumer, producer_config, required_partition_count
from streaming.client.restarting_producer import RestartingProducer
from streaming.contract.topics import TopicNames
from tests.recovery.checker.history import Function, Recorder
from tests.recovery.checker.operations import NS_PER_MS
from tests.recovery.recorded.surroundings import API_OF, Call

POLL_SECONDS = 0.05
CONNECT_SECONDS = 30.0
END_SECONDS = 5.0
PRODUCER_PAUSE_SECONDS = 1.0

HALF_OF_THE_CLIENTS = ("1", "3", "5", "7", "9")
"""The ends of their names, which are numbers."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ResponseEnvelope).decode


class LiveWorld:
    """Runs everything of the clients on one thread, between ``with`` and its end."""

    def __init__(self, recorder: Recorder, seed: int) -> None:
        self.recorder = recorder
        self.chance = Random(seed)
        self.failures: list[str] = []
        """Exceptions of the clients, which end none of them."""
        self._began = time.monotonic_ns()
        self._future: list[tuple[int, int, Callable[[], None]]] = []
        self._counter = 0
        self._changed = threading.Condition()
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name="clients", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify()
        self._thread.join()

    @property
    def now(self) -> int:
        """The time since the start, ms."""
        return (time.monotonic_ns() - self._began) // NS_PER_MS

    def after(self, ms: int, do: Callable[[], None]) -> None:
        """Do something later, on the clients' thread. Any thread may call it."""
        with self._changed:
            self._counter += 1
            heapq.heappush(self._future, (self.now + ms, self._counter, do))
            self._changed.notify()

    def about(self, ms: int) -> int:
        """A time around this one."""
        return self.chance.randint(ms // 2, ms * 3 // 2)

    def fault(self, note: str) -> None:
        """Record a fault."""
        self.recorder.note("nemesis", Function.FAULT, "", note=note)

    def call(self, do: Callable[[], object]) -> None:
        """Do something on the clients' thread, and wait until it is done."""
        is_done = threading.Event()

        def run() -> None:
            try:
                do()
            finally:
                is_done.set()

        self.after(0, run)
        assert is_done.wait(CONNECT_SECONDS), "the clients' thread hangs"

    def _run(self) -> None:
        while (do := self._next()) is not None:
            try:
                do()
            except Exception:
                self.failures.append(traceback.format_exc())

    def _next(self) -> Callable[[], None] | None:
        """Wait for what is due; None at the end."""
        with self._changed:
            while not self._has_ended:
                wait = (self._future[0][0] - self.now) / 1000 if self._future else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._future)[2]
                self._changed.wait(wait)
        return None


class _Answer(NamedTuple):
    error_code: int
    body: Any


class LiveNetwork:
    """The topics of a coordinator. The requests of all clients are appended in the order in which they were sent.

    Every record of the clients' partition of the responses is recorded, repetitions too. It uses none of the project's
    clients, so that it sees what they would not tell. ``outdated_answers`` counts what a job has answered in whose
    place another one had answered already; ``checks_epoch``: whether clients drop these answers.
    """

    def __init__(
        self, world: LiveWorld, bootstrap_servers: str, topics: TopicNames, *, checks_epoch: bool = True
    ) -> None:
        self._checks_epoch = checks_epoch
        self._world = world
        self._topics = topics
        # Long enough for any outage of a run; a request that has not been appended keeps its place.
        settings = producer_config(bootstrap_servers, "chaos-clients", {"message.timeout.ms": 0, "log_level": 0})
        self._producer = RestartingProducer(settings, PRODUCER_PAUSE_SECONDS)
        self._consumer = new_consumer(
            bootstrap_servers, "chaos-clients", {"log_level": 0}, {"auto.offset.reset": "earliest"}
        )
        self._partitions = required_partition_count(self._consumer, topics.requests, CONNECT_SECONDS)
        replies = required_partition_count(self._consumer, topics.responses, CONNECT_SECONDS)
        self._reply_partition = world.chance.randrange(replies)
        end = end_offset(self._consumer, topics.responses, self._reply_partition, CONNECT_SECONDS)
        self._consumer.assign([TopicPartition(topics.responses, self._reply_partition, end)])
        self.outdated_answers = 0
        self.delivered: dict[str, bytes] = {}
        """By group, the newest of the requests that :meth:`append` has appended."""
        self._newest_epoch = self._epoch_taken = 0
        self._held_back: list[Callable[[], None]] | None = None
        self._calls: dict[str, Call] = {}
        self._lock = threading.Lock()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._has_ended.set()
        self._thread.join()
        self._consumer.close()
        self._producer.flush(END_SECONDS)

    @property
    def world(self) -> LiveWorld:
        """Where the clients live."""
        return self._world

    def send(
        self,
        client: str,
        group: str,
        f: Function,
        body: RequestBody,
        timeout_ms: int,
        details: Mapping[str, Any],
        version: int | None,
    ) -> Call:
        """Record and send a request, in the API's newest version for None; the caller sets the call's functions."""
        correlation_id = str(uuid.uuid4())
        operation = self._world.recorder.invoke(client, f, group, correlation_id=correlation_id, **details)
        call = Call(client, group, operation, correlation_id)
        api = API_OF[f]
        request = RequestEnvelope(
            api=api,
            version=APIS[api].max_version if version is None else version,
            correlation_id=correlation_id,
            reply_partition=self._reply_partition,
            body=msgspec.Raw(_encode(body)),
            client_id=client,
            client_host="/127.0.0.1",
        )
        with self._lock:
            self._calls[correlation_id] = call
        self._world.after(timeout_ms, call.give_up)
        produce = partial(self._produce, call, group, _encode(request))
        if self._held_back is not None and client.endswith(HALF_OF_THE_CLIENTS):
            self._held_back.append(produce)
        else:
            produce()
        return call

    @contextmanager
    def cutting_off_half(self) -> Iterator[None]:
        """Hold back the requests of every second client within the block; they are sent at its end, in their order."""
        self._world.call(self._hold_back)
        try:
            yield
        finally:
            self._world.call(self._send_held_back)

    def _hold_back(self) -> None:
        self._held_back = []

    def _send_held_back(self) -> None:
        held_back, self._held_back = self._held_back, None
        for produce in held_back or ():
            produce()

    def append(self, group: str, value: bytes) -> None:
        """Append a request whose answer nobody awaits; ``delivered`` gets it when it is in the topic."""

        def delivered(error: KafkaError | None, _record: Message) -> None:
            if error is None:
                self.delivered[group] = value
            else:
                self._world.failures.append(f"a request about {group} was not appended: {error.str()}")

        partition = partition_for(group, self._partitions)
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                self._producer.produce(self._topics.requests, group.encode(), value, partition, delivered)
            except (BufferError, KafkaException):
                # The producer is full, or starts again.
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
            else:
                return

    def _produce(self, call: Call, group: str, value: bytes) -> None:
        def delivered(error: KafkaError | None, _record: Message) -> None:
            if error is None:
                call.appended_ns = time.monotonic_ns()

        partition = partition_for(group, self._partitions)
        try:
            self._producer.produce(self._topics.requests, group.encode(), value, partition, delivered)
        except (BufferError, KafkaException):
            # It is given up at its timeout, as any other without an answer.
            return

    def _run(self) -> None:
        while not self._has_ended.is_set():
            try:
                record = self._consumer.poll(POLL_SECONDS)
                if record is not None and record.error() is None:
                    self._arrived(record.value() or b"")
                self._producer.poll()
            except Exception:
                self._world.failures.append(traceback.format_exc())

    def _arrived(self, value: bytes) -> None:
        answer = _decode(value)
        if 0 < answer.job_epoch < self._newest_epoch:
            # As docs/messages.md tells clients: another job has taken that one's place.
            self.outdated_answers += 1
            if self._checks_epoch:
                return
        if answer.job_epoch not in (0, self._epoch_taken):
            self._epoch_taken = answer.job_epoch
            self._world.recorder.note("reader", Function.ANSWER, "", job_epoch=answer.job_epoch)
        self._newest_epoch = max(self._newest_epoch, answer.job_epoch)
        with self._lock:
            call = self._calls.get(answer.correlation_id)
        if call is not None:
            body = msgspec.json.decode(answer.body, type=APIS[answer.api].response_type | None)
            decoded = _Answer(answer.error_code, body)
            digest = sha256(value).hexdigest()
            self._world.after(0, lambda: self._deliver(call, decoded, digest))

    def _deliver(self, call: Call, answer: _Answer, digest: str) -> None:
        if call.is_open:
            call.is_open = False
            call.answered(answer, digest)
        else:
            self._world.recorder.note(
                "reader", Function.ANSWER, call.group, correlation_id=call.correlation_id, answer=digest
            )
