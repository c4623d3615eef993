"""What the tests of the clients share: topics of their own, waiting, and a coordinator that a test plays itself."""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from coordinator_logic.messages import (
    HeartbeatResponse,
    JoinGroupResponse,
    Message,
    RequestEnvelope,
    ResponseEnvelope,
    SyncGroupResponse,
)
from streaming.client import ConsumerRecord
from streaming.topics import TopicNames

LIMIT_SECONDS = 60.0


def unique(name: str) -> str:
    """A name that no other test uses."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def wait_until(condition: Callable[[], object], what: str, limit: float = LIMIT_SECONDS) -> None:
    """Wait for a condition; fail with ``what`` when the limit comes first."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit:g} s: {what}"
        time.sleep(0.01)


def create_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Create a topic, and wait until the broker tells of it: the controller is done a moment before."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(LIMIT_SECONDS)

    def is_told_of() -> bool:
        told = admin.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic]
        return told.error is None and len(told.partitions) == partitions

    wait_until(is_told_of, f"topic {topic} is in the broker's metadata")


def produce(bootstrap_servers: str, topic: str, values: Mapping[int, Iterable[bytes]]) -> None:
    """Append values to the partitions of a topic."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    for partition, records in values.items():
        for value in records:
            producer.produce(topic, value=value, key=f"key of {value!r}".encode(), partition=partition)
    assert producer.flush(LIMIT_SECONDS) == 0


def places(records: Iterable[ConsumerRecord]) -> list[tuple[int, int]]:
    """Partition and offset of each record."""
    return [(record.partition, record.offset) for record in records]


class PlayedCoordinator:
    """The two topics, with the test on the coordinator's side: it reads each request and writes each answer."""

    def __init__(self, bootstrap_servers: str, partitions: int = 3) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topics = TopicNames(unique("played") + "-")
        for topic in (self.topics.requests, self.topics.responses):
            create_topic(bootstrap_servers, topic, partitions)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "played"})
        self._consumer.assign([TopicPartition(self.topics.requests, p, 0) for p in range(partitions)])
        self.places: list[tuple[int, bytes | None]] = []
        self.passed_over = 0

    def close(self) -> None:
        self._consumer.close()
        self._producer.flush(LIMIT_SECONDS)

    def request(self, *apis: str, skip: tuple[str, ...] = ("Heartbeat",)) -> RequestEnvelope:
        """The next request; those of the APIs in ``skip`` are passed over unless asked for."""
        self.passed_over = 0
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            record = self._consumer.poll(0.1)
            if record is None:
                continue
            assert record.error() is None
            request = msgspec.json.decode(record.value() or b"", type=RequestEnvelope)
            self.places.append((record.partition() or 0, record.key()))
            if request.api in apis or (not apis and request.api not in skip):
                return request
            self.passed_over += 1
            assert request.api in skip, f"{request.api} came, {apis} was waited for"
        raise AssertionError(f"no request {apis} within {LIMIT_SECONDS:g} s")

    def answer(self, request: RequestEnvelope, body: Message | None, error_code: int = 0) -> None:
        """Answer a request; a heartbeat etc. may also stay without an answer."""
        raw = msgspec.Raw(msgspec.json.encode(body))
        envelope = ResponseEnvelope(request.api, request.version, request.correlation_id, "group", error_code, raw)
        self.append(msgspec.json.encode(envelope), request.reply_partition)

    def append(self, value: bytes | None, partition: int) -> None:
        """Append any record to the responses."""
        self._producer.produce(self.topics.responses, value=value, partition=partition)
        assert self._producer.flush(LIMIT_SECONDS) == 0

    # A group of one, step by step.

    def joins(self, member_id: str = "m-1", generation: int = 1, *, skip_assignment: bool = False) -> dict[str, Any]:
        """Let the only member join as the leader; returns the body of its request."""
        request = self.request("JoinGroup")
        self.answer(
            request,
            JoinGroupResponse(
                generation_id=generation,
                protocol_type="connect",
                protocol_name="p",
                leader=member_id,
                member_id=member_id,
                skip_assignment=skip_assignment,
            ),
        )
        return body_of(request)

    def refuses_join(self, error_code: int, member_id: str = "") -> dict[str, Any]:
        """Answer a JoinGroup with an error; returns the body of the request."""
        request = self.request("JoinGroup")
        self.answer(request, JoinGroupResponse(error_code=error_code, member_id=member_id), error_code)
        return body_of(request)

    def syncs(self, assignment: bytes = b"everything", error_code: int = 0) -> dict[str, Any]:
        """Answer a SyncGroup; returns the body of the request."""
        request = self.request("SyncGroup")
        self.answer(request, SyncGroupResponse(error_code, "connect", "p", assignment), error_code)
        return body_of(request)

    def beats(self, error_code: int = 0) -> dict[str, Any]:
        """Answer a heartbeat; returns the body of the request."""
        request = self.request("Heartbeat")
        self.answer(request, HeartbeatResponse(error_code), error_code)
        return body_of(request)


def body_of(request: RequestEnvelope) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(request.body)
    return body


class Loop:
    """Calls ``turn`` again and again on a thread of its own until it is ended; an exception ends it, too."""

    def __init__(self, turn: Callable[[], object]) -> None:
        self._turn = turn
        self._ended = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._turn()
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        """End the loop after the turn under way."""
        self._ended.set()
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive(), "a loop did not end"


class RunningCoordinator(Protocol):
    """What the ``coordinator`` fixture gives: where a running coordinator is found."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def topics(self) -> TopicNames: ...
