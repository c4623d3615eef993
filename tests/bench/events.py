"""Requests as bytes, answers told apart by their key: thousands a second from one thread, with a part of a core.

The project's own client keeps a future, a deadline and a decoded answer for every request, as its users want it. A load
generator that did so would measure itself.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import msgspec
from confluent_kafka import Message, Producer, TopicPartition

from coordinator_logic.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    Protocol,
    RequestEnvelope,
    ResponseEnvelope,
    SyncGroupRequest,
)
from coordinator_logic.messages import Message as Body
from coordinator_logic.partitioning import partition_for
from streaming.client.librdkafka import end_offset, new_consumer, producer_config, required_partition_count
from tests.bench.latency import Timings

LIMIT_SECONDS = 60.0
LONGEST_POLL_SECONDS = 0.05
SAMPLE_EVERY = 10
TICK_SECONDS = 0.004
"""What is due within it is sent together: to wake for each request would take half a core at 1,000 a second."""
IN_FLIGHT = 40_000
"""How many requests may wait for their answer while groups are formed: enough for full batches, no flood."""

TELL_EVERY = 25_000

SESSION_TIMEOUT_MS = 1_800_000
"""The longest that a broker allows by default: who forms 100,000 groups has no time for their heartbeats."""

JOIN_VERSION = 3
"""The last version in which a member needs no second JoinGroup (KIP-394)."""

_encode = msgspec.json.Encoder().encode
_decode_envelope = msgspec.json.Decoder(ResponseEnvelope).decode
_decode_joined = msgspec.json.Decoder(JoinGroupResponse).decode


class Beat(NamedTuple):
    """A member's heartbeat, less its correlation id, which goes between ``head`` and ``tail``."""

    key: bytes
    partition: int
    head: bytes
    tail: bytes


class Sample(NamedTuple):
    """A request on its way; times in seconds since the epoch.

    ``appended`` and ``answered`` are the broker's: when it appended the request, and the answer.
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
    """One producer of requests and one consumer of the first partition of the responses, for one thread."""

    def __init__(self, bootstrap_servers: str, requests: str, responses: str) -> None:
        self._requests = requests
        self._run = uuid.uuid4().hex[:6].encode()
        self._number = 0
        settings = producer_config(bootstrap_servers, "bench", {})
        # Bursts are part of what is measured; the generator must not wait for room in its own queue.
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
    # Any request

    def ask(self, group_id: str, api: str, version: int, body: Body) -> bytes:
        """Append a request; returns its correlation id."""
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

    def answers(self, seconds: float) -> list[Message]:
        """What has come, waiting at most so long for the first."""
        self._producer.poll(0)
        record = self._consumer.poll(seconds)
        if record is None:
            return []
        records = [record]
        while len(records) < 1000 and (record := self._consumer.poll(0)) is not None:
            records.append(record)
        for record in records:
            if (error := record.error()) is not None:
                raise RuntimeError(f"reading the answers: {error.str()}")
        return records

    def _next_id(self) -> bytes:
        self._number += 1
        return b"%s-%d" % (self._run, self._number)

    # ----------------------------------------------------------------------------------------------------------
    # Groups

    def form_groups(
        self, group_ids: Iterable[str], members: int, told: Callable[[int], None] = lambda _formed: None
    ) -> list[Membership]:
        """Form a group of so many members under each id. TimeoutError when answers stay away."""
        joining: dict[bytes, str] = {}
        syncing: dict[bytes, Membership] = {}
        joined: list[Membership] = []
        waiting = iter(group_ids)
        last_answer = time.monotonic()
        while True:
            while len(joining) + len(syncing) < IN_FLIGHT and (group_id := next(waiting, None)) is not None:
                request = JoinGroupRequest(group_id, SESSION_TIMEOUT_MS, "bench", [Protocol("one", b"")], 60_000)
                joining |= {self.ask(group_id, "JoinGroup", JOIN_VERSION, request): group_id for _ in range(members)}
            if not joining and not syncing:
                return joined
            for record in self.answers(LONGEST_POLL_SECONDS):
                last_answer = time.monotonic()
                key = record.key() or b""
                if (group := joining.pop(key, None)) is not None:
                    membership, sync = _sync(group, _decode_envelope(record.value() or b""))
                    syncing[self.ask(group, "SyncGroup", 3, sync)] = membership
                elif (member := syncing.pop(key, None)) is not None:
                    _check(_decode_envelope(record.value() or b""))
                    joined.append(member)
                    if len(joined) % TELL_EVERY == 0:
                        told(len(joined))
            if time.monotonic() - last_answer > LIMIT_SECONDS:
                raise TimeoutError(f"{len(joining)} joins and {len(syncing)} syncs were not answered")

    def beats(self, members: Iterable[Membership]) -> list[Beat]:
        """Their heartbeats, encoded as far as they are always the same."""
        return [
            Beat(
                member.group_id.encode(),
                partition_for(member.group_id, self._request_partitions),
                b'{"api":"Heartbeat","version":4,"correlationId":"',
                b'","clientId":"bench","clientHost":"127.0.0.1","replyPartition":0,"body":%s}'
                % _encode(
                    {
                        "groupId": member.group_id,
                        "generationId": member.generation_id,
                        "memberId": member.member_id,
                    }
                ),
            )
            for member in members
        ]

    def send(self, beat: Beat) -> None:
        """Append one heartbeat, and wait until the broker has it."""
        self._producer.produce(
            self._requests, b"".join((beat.head, self._next_id(), beat.tail)), beat.key, beat.partition
        )
        self._producer.flush(LIMIT_SECONDS)

    def beat(
        self,
        beats: Sequence[Beat],
        times: Sequence[float],
        limit_seconds: float = LIMIT_SECONDS,
        samples: list[Sample] | None = None,
    ) -> Timings:
        """Send ``beats`` in turn, one at each of ``times`` (seconds from now), and wait for their answers.

        A latency counts from when its request was due; see :mod:`tests.bench.latency`. What has no answer
        ``limit_seconds`` after the last was due, or is refused, has failed. ``samples`` is given some of them.
        """
        waiting: dict[bytes, float] = {}
        appended: dict[bytes, float] = {}
        latencies: list[float] = []
        due: list[float] = []
        late: list[float] = []
        refused = sent = 0
        count = len(times)
        begin = time.perf_counter()
        epoch = time.time() - begin
        give_up = begin + times[-1] + limit_seconds
        while sent < count or waiting:
            now = time.perf_counter()
            if now > give_up:
                break
            while sent < count and begin + times[sent] <= now:
                beat = beats[sent % len(beats)]
                key = self._next_id()
                waiting[key] = begin + times[sent]
                noted = _noting(appended, key) if samples is not None and sent % SAMPLE_EVERY == 0 else None
                value = b"".join((beat.head, key, beat.tail))
                # For what is its own answer, see echo().
                self._producer.produce(self._requests, value, beat.key or key, beat.partition, on_delivery=noted)
                now = time.perf_counter()
                late.append(now - waiting[key])
                sent += 1
            until_next = begin + times[sent] - now if sent < count else LONGEST_POLL_SECONDS
            records = self.answers(min(max(TICK_SECONDS, until_next), LONGEST_POLL_SECONDS))
            now = time.perf_counter()
            for record in records:
                key = record.key() or b""
                was_due = waiting.pop(key, None)
                if was_due is None:
                    continue
                latencies.append(now - was_due)
                due.append(was_due - begin)
                refused += b'"errorCode":0,' not in (record.value() or b"")
                if samples is not None and (then := appended.pop(key, None)) is not None:
                    samples.append(Sample(epoch + was_due, then, record.timestamp()[1] / 1000, epoch + now))
        return Timings(latencies, due, late, len(waiting) + refused)


def echo() -> Beat:
    """A record like a heartbeat's that answers itself, where requests and answers are one topic."""
    return Beat(b"", 0, b'{"api":"Heartbeat","correlationId":"', b'","errorCode":0,"body":"%s"}' % bytes(150))


def _noting(appended: dict[bytes, float], key: bytes) -> Callable[[object, Message], None]:
    def note(error: object, record: Message) -> None:
        if error is None:
            appended[key] = record.timestamp()[1] / 1000

    return note


def _sync(group_id: str, answer: ResponseEnvelope) -> tuple[Membership, SyncGroupRequest]:
    _check(answer)
    joined = _decode_joined(answer.body)
    assignments = [MemberAssignment(member.member_id, b"something") for member in joined.members]
    membership = Membership(group_id, joined.member_id, joined.generation_id)
    return membership, SyncGroupRequest(group_id, joined.generation_id, joined.member_id, assignments=assignments)


def _check(answer: ResponseEnvelope) -> None:
    if answer.error_code:
        raise RuntimeError(f"{answer.api} of {answer.group_id} was answered {answer}")
