"""A coordinator whose every answer is written by the test."""

import time
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_logic.messages import (
    HeartbeatResponse,
    JoinGroupResponse,
    Message,
    RequestEnvelope,
    ResponseEnvelope,
    SyncGroupResponse,
)
from streaming.contract.topics import TopicNames
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS


class ScriptedCoordinator:
    """Request and response topics of its own; the test reads each request and appends each answer.

    ``placements`` has the partition and the key of every request that was read. ``skipped`` counts the requests that
    the latest :meth:`request` skipped.
    """

    def __init__(self, bootstrap_servers: str, partitions: int = 3) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topics = TopicNames(unique("scripted") + "-")
        for topic in (self.topics.requests, self.topics.responses):
            create_topic(bootstrap_servers, topic, partitions)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "scripted"})
        self._consumer.assign([TopicPartition(self.topics.requests, p, 0) for p in range(partitions)])
        self.placements: list[tuple[int, bytes | None]] = []
        self.skipped = 0

    def close(self) -> None:
        self._consumer.close()
        self._producer.flush(LIMIT_SECONDS)

    def request(self, *apis: str, skip: tuple[str, ...] = ("Heartbeat",)) -> RequestEnvelope:
        """The next request of one of ``apis``, or of any; requests of the APIs in ``skip`` alone may precede it."""
        self.skipped = 0
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            record = self._consumer.poll(0.1)
            if record is None:
                continue
            assert record.error() is None
            request = msgspec.json.decode(record.value() or b"", type=RequestEnvelope)
            self.placements.append((record.partition() or 0, record.key()))
            if request.api in apis or (not apis and request.api not in skip):
                return request
            self.skipped += 1
            assert request.api in skip, f"{request.api} came while waiting for {apis}"
        raise AssertionError(f"no request {apis} within {LIMIT_SECONDS:g} s")

    def answer(
        self, request: RequestEnvelope, body: Message | None, error_code: int = 0, *, job_epoch: int = 0
    ) -> None:
        """Answer a request that was read, as the job with this epoch."""
        raw = msgspec.Raw(msgspec.json.encode(body))
        envelope = ResponseEnvelope(
            request.api, request.version, request.correlation_id, "group", error_code, raw, job_epoch=job_epoch
        )
        self.append(msgspec.json.encode(envelope), request.reply_partition)

    def append(self, value: bytes | None, partition: int) -> None:
        """Append any record to the response topic."""
        self._producer.produce(self.topics.responses, value=value, partition=partition)
        assert self._producer.flush(LIMIT_SECONDS) == 0

    # A group of one member, step by step.

    def accept_join(
        self, member_id: str = "m-1", generation: int = 1, *, skip_assignment: bool = False
    ) -> dict[str, Any]:
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

    def refuse_join(self, error_code: int, member_id: str = "") -> dict[str, Any]:
        """Answer a JoinGroup with an error; returns the body of the request."""
        request = self.request("JoinGroup")
        self.answer(request, JoinGroupResponse(error_code=error_code, member_id=member_id), error_code)
        return body_of(request)

    def answer_sync(self, assignment: bytes = b"everything", error_code: int = 0) -> dict[str, Any]:
        """Answer a SyncGroup; returns the body of the request."""
        request = self.request("SyncGroup")
        self.answer(request, SyncGroupResponse(error_code, "connect", "p", assignment), error_code)
        return body_of(request)

    def answer_heartbeat(self, error_code: int = 0) -> dict[str, Any]:
        """Answer a Heartbeat; returns the body of the request."""
        request = self.request("Heartbeat")
        self.answer(request, HeartbeatResponse(error_code), error_code)
        return body_of(request)


def body_of(request: RequestEnvelope) -> dict[str, Any]:
    """The body of a request as plain JSON."""
    body: dict[str, Any] = msgspec.json.decode(request.body)
    return body
