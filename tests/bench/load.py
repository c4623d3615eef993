"""Heartbeats of Stable groups at a fixed rate, and what a record takes through the broker alone meanwhile."""

import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MemberAssignment,
    Protocol,
    SyncGroupRequest,
)
from streaming.client import CoordinatorClient, CoordinatorError, apis
from streaming.client.apis import Answer
from streaming.client.librdkafka import new_consumer, producer_config
from tests.bench.figures import Load, Plan
from tests.bench.latency import run_schedule, schedule, summary
from tests.bench.usage import cpu_seconds, machine_cpu_seconds

SESSION_TIMEOUT_MS = 45_000
ANSWER_LIMIT_SECONDS = 30.0

PROBES_PER_SECOND = 5
PROBE_BYTES = 300
"""About what a heartbeat has as a request event."""


def stable_groups(client: CoordinatorClient, count: int) -> list[HeartbeatRequest]:
    """Form groups of one member each; returns the heartbeat of each."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda index: _stable_group(client, f"beating-{count}-{index}"), range(count)))


def _stable_group(client: CoordinatorClient, group_id: str) -> HeartbeatRequest:
    request = JoinGroupRequest(group_id, SESSION_TIMEOUT_MS, "bench", [Protocol("one", b"")], SESSION_TIMEOUT_MS)
    refused = client.ask(apis.JOIN_GROUP, group_id, request).result()
    if refused.error is not Error.MEMBER_ID_REQUIRED or refused.body is None:
        raise RuntimeError(f"{group_id}: the first JoinGroup was answered {refused}")
    member_id = refused.body.member_id
    joined = client.join_group(msgspec.structs.replace(request, member_id=member_id))
    sync = SyncGroupRequest(
        group_id,
        joined.generation_id,
        member_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=[MemberAssignment(member_id, b"something")],
    )
    client.sync_group(sync)
    return HeartbeatRequest(group_id, joined.generation_id, member_id)


def measure_load(client: CoordinatorClient, heartbeats: list[HeartbeatRequest], plan: Plan) -> Load:
    """Send the groups' heartbeats in turn, each once a second, for the time that the plan says."""
    rate = len(heartbeats)

    def send(index: int) -> Future[None]:
        return _answered(client, heartbeats[index % rate])

    run_schedule(schedule(rate, plan.scale.warm_up_seconds), send, ANSWER_LIMIT_SECONDS)
    seconds = plan.scale.measured_seconds
    with _BrokerRoundTrip(plan) as broker, ThreadPoolExecutor(1) as prober:
        began, before = time.perf_counter(), _cpu_seconds(plan)
        probed = prober.submit(run_schedule, schedule(PROBES_PER_SECOND, seconds), broker.send, ANSWER_LIMIT_SECONDS)
        heard = run_schedule(schedule(rate, seconds), send, ANSWER_LIMIT_SECONDS)
        round_trips = probed.result()
        took = time.perf_counter() - began
        generator, coordinator, machine = (
            round((now - then) / took, 3) for now, then in zip(_cpu_seconds(plan), before, strict=True)
        )
    return Load(
        rate=rate,
        latency=summary(heard.latencies),
        broker_round_trip=summary(round_trips.latencies),
        sent_late=summary(heard.late),
        failed=heard.failed,
        generator_cores=generator,
        coordinator_cores=coordinator,
        other_cores=round(max(0.0, machine - generator - coordinator), 3),
    )


def _cpu_seconds(plan: Plan) -> tuple[float, float, float]:
    """Of this process, of the coordinator, and of the whole machine."""
    return time.process_time(), cpu_seconds(plan.driver_pid), machine_cpu_seconds()


def _answered(client: CoordinatorClient, heartbeat: HeartbeatRequest) -> Future[None]:
    """Completes with the answer; an error answer is a failure."""
    succeeded: Future[None] = Future()

    def check(answered: Future[Answer[HeartbeatResponse]]) -> None:
        try:
            answered.result().unwrap()
        except CoordinatorError as failure:
            succeeded.set_exception(failure)
        else:
            succeeded.set_result(None)

    client.ask(apis.HEARTBEAT, heartbeat.group_id, heartbeat).add_done_callback(check)
    return succeeded


class _BrokerRoundTrip:
    """Appends a record to a topic of its own and reads it back, with the client's own producer and consumer settings.

    For one thread: a probe is read back before the next is sent, and is still timed from when it was due.
    """

    def __init__(self, plan: Plan) -> None:
        self._servers = plan.bootstrap_servers
        self._topic = f"{plan.topic_prefix}round-trip-{uuid.uuid4().hex[:8]}"

    def __enter__(self) -> Self:
        admin = AdminClient({"bootstrap.servers": self._servers})
        for created in admin.create_topics([NewTopic(self._topic, 1, 1)], operation_timeout=10).values():
            created.result(ANSWER_LIMIT_SECONDS)
        self._producer = Producer(producer_config(self._servers, "bench", {}))
        self._consumer = new_consumer(self._servers, "bench", {}, {})
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        # The connections are made by the first one.
        self.send(-1)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._consumer.close()

    def send(self, index: int) -> Future[None]:
        """Completed already when it is returned."""
        done: Future[None] = Future()
        sent = str(index).encode().ljust(PROBE_BYTES)
        self._producer.produce(self._topic, value=sent)
        deadline = time.monotonic() + ANSWER_LIMIT_SECONDS
        while time.monotonic() < deadline:
            record = self._consumer.poll(1.0)
            if record is not None and record.value() == sent:
                done.set_result(None)
                return done
        done.set_exception(TimeoutError(f"a record was not read back in {ANSWER_LIMIT_SECONDS:.0f} s"))
        return done
