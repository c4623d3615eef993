"""A load generator over the topics: thousands of requests a second from one thread, on a fraction of a core.

Requests are encoded in advance, and responses matched by key without decoding them. The project's own client keeps a
future, a deadline and a decoded response for every request; a load generator that did so would measure itself.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import msgspec
from confluent_kafka import Message, Producer, TopicPartition

from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    RequestEnvelope,
    ResponseEnvelope,
    SyncGroupRequest,
    TopicToCommit,
)
from coordinator_logic.messages import Message as Body
from coordinator_logic.partitioning import partition_for
from streaming.client.librdkafka import end_offset, new_consumer, producer_config, required_partition_count
from streaming.client.request_reply import headers_of
from streaming.client.restarting_producer import Headers
from tests.bench.latency import Timings

LIMIT_SECONDS = 60.0
LONGEST_POLL_SECONDS = 0.05
SAMPLE_EVERY = 10
TICK_SECONDS = 0.004
"""Requests that are due within a tick are sent together: a wake-up for each takes half a core at 1,000/s."""
IN_FLIGHT = 40_000
"""The most requests without a response while groups are formed: enough for full batches."""

PROGRESS_EVERY = 25_000
"""``on_progress`` is called after this many members have joined."""

SESSION_TIMEOUT_MS = 1_800_000
"""The longest that a broker allows by default: members of 100,000 groups that are forming send no heartbeats."""

JOIN_VERSION = 3
"""The last version in which a new member joins with a single JoinGroup (before KIP-394)."""

_encode = msgspec.json.Encoder().encode
_decode_envelope = msgspec.json.Decoder(ResponseEnvelope).decode
_decode_joined = msgspec.json.Decoder(JoinGroupResponse).decode


class PreparedRequest(NamedTuple):
    """An encoded request without its correlation id, which belongs between ``head`` and ``tail``."""

    key: bytes
    partition: int
    head: bytes
    tail: bytes
    headers: Headers = ()


class Sample(NamedTuple):
    """When a request was due, appended, answered and received; seconds since the epoch.

    ``appended`` and ``answered`` are the broker's append times of the request and of the response.
    """

    due: float
    appended: float
    answered: float
    received: float


class Membership(NamedTuple):
    """A member of a Stable group."""

    group_id: str
    member_id: str
    generation_id: int


class Events:
    """A producer of requests and a consumer of the first response partition. Not thread-safe."""

    def __init__(self, bootstrap_servers: str, requests: str, responses: str) -> None:
        self._requests = requests
        self._run = uuid.uuid4().hex[:6].encode()
        self._number = 0
        settings = producer_config(bootstrap_servers, "bench", {})
        # Bursts are measured too: the generator must not wait for room in its own queue.
        settings |= {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1_000_000}
        self._producer = Producer(settings)
        self._consumer = new_consumer(bootstrap_servers, "bench", {}, {"fetch.wait.max.ms": 100})
        self._request_partitions = required_partition_count(self._consumer, requests, LIMIT_SECONDS)
        end = end_offset(self._consumer, responses, 0, LIMIT_SECONDS)
        self._consumer.assign([TopicPartition(responses, 0, end)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._producer.flush(LIMIT_SECONDS)
        self._consumer.close()

    # ----------------------------------------------------------------------------------------------------------
    # Single requests

    def append(self, group_id: str, api: str, version: int, body: Body) -> bytes:
        """Append a request, and return its correlation id."""
        correlation_id = self._next_id()
        envelope = RequestEnvelope(
            api=api,
            version=version,
            correlation_id=correlation_id.decode(),
            reply_partition=0,
            body=msgspec.Raw(_encode(body)),
            client_id="bench",
            client_host="127.0.0.1",
        )
        partition = partition_for(group_id, self._request_partitions)
        self._producer.produce(self._requests, _encode(envelope), group_id.encode(), partition)
        return correlation_id

    def responses(self, seconds: float) -> list[Message]:
        """Return the responses that have arrived, after waiting up to ``seconds`` for the first."""
        self._producer.poll(0)
        record = self._consumer.poll(seconds)
        if record is None:
            return []
        records = [record]
        while len(records) < 1000 and (record := self._consumer.poll(0)) is not None:
            records.append(record)
        for record in records:
            if (error := record.error()) is not None:
                raise RuntimeError(f"cannot read responses: {error.str()}")
        return records

    def _next_id(self) -> bytes:
        self._number += 1
        return b"%s-%d" % (self._run, self._number)

    # ----------------------------------------------------------------------------------------------------------
    # Groups

    def form_groups(
        self,
        group_ids: Iterable[str],
        members: int,
        on_progress: Callable[[int], None] = lambda _joined: None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> list[Membership]:
        """Form a group of ``members`` members under each id. Raises TimeoutError when responses stop arriving."""
        joining: dict[bytes, str] = {}
        syncing: dict[bytes, Membership] = {}
        joined: list[Membership] = []
        waiting = iter(group_ids)
        last_response = time.monotonic()
        while True:
            while len(joining) + len(syncing) < IN_FLIGHT and (group_id := next(waiting, None)) is not None:
                request = JoinGroupRequest(group_id, session_timeout_ms, "bench", [Protocol("one", b"")], 60_000)
                joining |= {self.append(group_id, "JoinGroup", JOIN_VERSION, request): group_id for _ in range(members)}
            if not joining and not syncing:
                return joined
            for record in self.responses(LONGEST_POLL_SECONDS):
                last_response = time.monotonic()
                key = record.key() or b""
                if (group := joining.pop(key, None)) is not None:
                    membership, sync = _sync(group, _decode_envelope(record.value() or b""))
                    syncing[self.append(group, "SyncGroup", 3, sync)] = membership
                elif (member := syncing.pop(key, None)) is not None:
                    _check(_decode_envelope(record.value() or b""))
                    joined.append(member)
                    if len(joined) % PROGRESS_EVERY == 0:
                        on_progress(len(joined))
            if time.monotonic() - last_response > LIMIT_SECONDS:
                raise TimeoutError(f"{len(joining)} JoinGroup and {len(syncing)} SyncGroup requests have no response")

    def heartbeats(self, members: Iterable[Membership]) -> list[PreparedRequest]:
        """Prepare a heartbeat of each member."""
        return [
            self.prepared(
                "Heartbeat",
                4,
                member.group_id,
                HeartbeatRequest(member.group_id, member.generation_id, member.member_id),
            )
            for member in members
        ]

    def commits(self, group_ids: Iterable[str]) -> list[PreparedRequest]:
        """Prepare an offset commit of one partition for each group, from a consumer that manages its own partitions."""
        topics = [TopicToCommit("topic", [PartitionToCommit(0, 42)])]
        return [self.prepared("OffsetCommit", 8, each, OffsetCommitRequest(each, topics)) for each in group_ids]

    def prepared(self, api: str, version: int, group_id: str, body: Body) -> PreparedRequest:
        """Prepare a request."""
        return PreparedRequest(
            group_id.encode(),
            partition_for(group_id, self._request_partitions),
            b'{"api":"%s","version":%d,"correlationId":"' % (api.encode(), version),
            b'","clientId":"bench","clientHost":"127.0.0.1","replyPartition":0,"body":%s}' % _encode(body),
            headers_of(body),
        )

    def send(self, request: PreparedRequest) -> None:
        """Append one request, and wait until the broker has acknowledged it."""
        self._produce(request, self._next_id())
        self._producer.flush(LIMIT_SECONDS)

    def append_all(self, requests: Iterable[PreparedRequest]) -> None:
        """Append requests as fast as the broker takes them, and wait until it has acknowledged all."""
        for request in requests:
            while True:
                try:
                    self._produce(request, self._next_id())
                    break
                except BufferError:
                    self._producer.poll(LONGEST_POLL_SECONDS)
        self._producer.flush(LIMIT_SECONDS)

    def _produce(
        self,
        request: PreparedRequest,
        correlation_id: bytes,
        on_delivery: Callable[[object, Message], None] | None = None,
    ) -> None:
        value = b"".join((request.head, correlation_id, request.tail))
        # A record of echo() has no key of its own: it is its own response.
        key = request.key or correlation_id
        self._producer.produce(
            self._requests, value, key, request.partition, on_delivery=on_delivery, headers=list(request.headers)
        )

    def send_on_schedule(
        self,
        requests: Sequence[PreparedRequest],
        times: Sequence[float],
        limit_seconds: float = LIMIT_SECONDS,
        samples: list[Sample] | None = None,
    ) -> Timings:
        """Send the requests in order, one at each of ``times`` (seconds from now), and wait for their responses.

        A latency counts from when its request was due; see :mod:`tests.bench.latency`. A request has failed when its
        response is an error, or has not arrived ``limit_seconds`` after the last request was due. One request in
        :data:`SAMPLE_EVERY` is added to ``samples``.
        """
        count = len(times)
        begin = time.perf_counter()
        outstanding = _Outstanding(begin, samples)
        late: list[float] = []
        give_up = begin + times[-1] + limit_seconds
        while len(late) < count or outstanding.due:
            now = time.perf_counter()
            if now > give_up:
                break
            sent = len(late)
            while sent < count and begin + times[sent] <= now:
                key = self._next_id()
                on_delivery = outstanding.add(key, begin + times[sent], is_sample=sent % SAMPLE_EVERY == 0)
                self._produce(requests[sent % len(requests)], key, on_delivery)
                now = time.perf_counter()
                late.append(now - begin - times[sent])
                sent += 1
            until_next = begin + times[sent] - now if sent < count else LONGEST_POLL_SECONDS
            records = self.responses(min(max(TICK_SECONDS, until_next), LONGEST_POLL_SECONDS))
            outstanding.receive(records)
        return outstanding.timings(late)


class _Outstanding:
    """The requests of a schedule that have no response yet, and the timings of those that have one.

    ``due`` is when each outstanding request was due, by its correlation id. ``samples``, if there is such a list,
    receives the requests that are added as samples.
    """

    def __init__(self, begin: float, samples: list[Sample] | None) -> None:
        self.due: dict[bytes, float] = {}
        self._begin = begin
        self._epoch = time.time() - begin
        self._samples = samples
        self._appended: dict[bytes, float] = {}
        self._latencies: list[float] = []
        self._was_due: list[float] = []
        self._refused = 0

    def add(self, key: bytes, due: float, *, is_sample: bool) -> Callable[[object, Message], None] | None:
        """Add a request that is sent now; return the producer's callback, if it is a sample."""
        self.due[key] = due
        if self._samples is None or not is_sample:
            return None

        def record_append_time(error: object, record: Message) -> None:
            if error is None:
                self._appended[key] = record.timestamp()[1] / 1000

        return record_append_time

    def receive(self, records: Iterable[Message]) -> None:
        """Match responses that have just arrived; those to other requests are ignored."""
        now = time.perf_counter()
        for record in records:
            key = record.key() or b""
            due = self.due.pop(key, None)
            if due is None:
                continue
            self._latencies.append(now - due)
            self._was_due.append(due - self._begin)
            self._refused += b'"errorCode":0,' not in (record.value() or b"")
            appended = self._appended.pop(key, None)
            if appended is not None and self._samples is not None:
                answered = record.timestamp()[1] / 1000
                self._samples.append(Sample(self._epoch + due, appended, answered, self._epoch + now))

    def timings(self, late: list[float]) -> Timings:
        """Return the timings; requests that are still outstanding have failed."""
        return Timings(self._latencies, self._was_due, late, len(self.due) + self._refused)


def echo() -> PreparedRequest:
    """Prepare a record of a heartbeat's size that is its own response, where requests and responses are one topic."""
    return PreparedRequest(
        b"", 0, b'{"api":"Heartbeat","correlationId":"', b'","errorCode":0,"body":"%s"}' % bytes(150)
    )


def _sync(group_id: str, response: ResponseEnvelope) -> tuple[Membership, SyncGroupRequest]:
    _check(response)
    joined = _decode_joined(response.body)
    assignments = [MemberAssignment(member.member_id, b"something") for member in joined.members]
    membership = Membership(group_id, joined.member_id, joined.generation_id)
    return membership, SyncGroupRequest(group_id, joined.generation_id, joined.member_id, assignments=assignments)


def _check(response: ResponseEnvelope) -> None:
    if response.error_code:
        raise RuntimeError(f"{response.api} of group {response.group_id} failed: {response}")
