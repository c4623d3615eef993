"""The consumer group protocol (KIP-848) through the job: ``python -m tests.bench.consumer_group_protocol``.

Heartbeats: 1,000 groups of a member send 1,000 heartbeats a second, classic groups and consumer groups alternately, so
that what slows the machine slows both.

Reconciliation: the time from the first heartbeat of 10 members until they have the 900 partitions of a topic, each of
them; then an eleventh member comes, and the partitions that move are away for a time, while nobody else loses any.
"""

import base64
import json
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseEnvelope,
    TopicDescription,
)
from streaming.client import CoordinatorClient, GroupMember, MemberConfig
from streaming.client.membership.consumer_groups.types import PartitionCallbacks, TopicSubscription
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import machine, versions
from tests.bench.events import LIMIT_SECONDS, LONGEST_POLL_SECONDS, Events, PreparedRequest
from tests.bench.latency import Latency, schedule, summary
from tests.bench.scenarios.loads import group_names
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import wait_until

RATE = 1_000.0
WARM_UP_SECONDS = 15.0
POLL_SECONDS = 0.2
STILL_SECONDS = 12.0
"""Longer than two heartbeat intervals of the default: nothing moves any more."""

OPTIONS = {"driver-memory": "1g", "request-partitions": 1, "response-partitions": 1}
PREFIX = "consumer-"

_decode_envelope = msgspec.json.Decoder(ResponseEnvelope).decode
_decode_beat = msgspec.json.Decoder(ConsumerGroupHeartbeatResponse).decode


class Heartbeats(msgspec.Struct, frozen=True):
    """The latencies of heartbeats that change nothing, of all rounds together, and the requests that failed."""

    classic: Latency
    consumer: Latency
    failed: int


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """A group of ``members`` with ``partitions``.

    seconds: from the first heartbeat until each member had its share. moved: partitions that changed their owner when
    another member came. longest_away: of these, the longest time without an owner, s. disturbed: partitions that their
    owner lost and got again. seconds_of_another: until that member had its share.
    """

    members: int
    partitions: int
    seconds: float
    moved: int
    longest_away: float
    disturbed: int
    seconds_of_another: float


def compare_heartbeats(events: Events, groups: int, rounds: int, seconds: float) -> Heartbeats:
    """Send heartbeats of both protocols alternately."""
    classic = events.heartbeats(events.form_groups(group_names("classic", groups), 1))
    consumer = _consumer_heartbeats(events, group_names("consumer", groups))
    found: dict[str, list[float]] = {"classic": [], "consumer": []}
    failed = 0
    for requests in (classic, consumer):
        events.send_on_schedule(requests, schedule(RATE, WARM_UP_SECONDS))
    for _ in range(rounds):
        for name, requests in (("classic", classic), ("consumer", consumer)):
            timings = events.send_on_schedule(requests, schedule(RATE, seconds))
            found[name] += timings.latencies
            failed += timings.failed
    return Heartbeats(summary(found["classic"]), summary(found["consumer"]), failed)


def _consumer_heartbeats(events: Events, group_ids: Sequence[str]) -> list[PreparedRequest]:
    """Let a member join each of these consumer groups, and prepare its heartbeat. Raises TimeoutError."""
    topic = TopicDescription("orders", _topic_id(), 6)
    waiting: dict[bytes, ConsumerGroupHeartbeatRequest] = {}
    stable: list[ConsumerGroupHeartbeatRequest] = []

    def send(beat: ConsumerGroupHeartbeatRequest) -> None:
        waiting[events.append(beat.group_id, "ConsumerGroupHeartbeat", 1, beat)] = beat

    for group_id in group_ids:
        send(
            ConsumerGroupHeartbeatRequest(
                group_id,
                _topic_id(),
                0,
                rebalance_timeout_ms=300_000,
                subscribed_topic_names=[topic.name],
                topic_partitions=[],
                topics=[topic],
            )
        )
    deadline = time.monotonic() + LIMIT_SECONDS
    while waiting:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(waiting)} heartbeats have no response")
        for record in events.responses(LONGEST_POLL_SECONDS):
            sent = waiting.pop(record.key() or b"", None)
            if sent is None:
                continue
            answered = _decode_beat(_decode_envelope(record.value() or b"").body)
            assert answered.error_code == 0, answered
            owned = None if answered.assignment is None else answered.assignment.topic_partitions
            beat = ConsumerGroupHeartbeatRequest(sent.group_id, sent.member_id, answered.member_epoch)
            if owned:
                # Says that it has them; from the next one on, nothing changes.
                send(msgspec.structs.replace(beat, topic_partitions=owned))
            elif sent.topic_partitions:
                stable.append(beat)
            else:
                # The target is computed later than the join.
                send(beat)
    return [events.prepared("ConsumerGroupHeartbeat", 1, beat.group_id, beat) for beat in stable]


class _Member(PartitionCallbacks):
    """The callbacks of a member: it notes when it got and gave up each partition, by ``time.perf_counter``."""

    def __init__(self, topic: TopicDescription) -> None:
        self.owned: set[int] = set()
        self.got: dict[int, float] = {}
        self.gave: dict[int, float] = {}
        self._subscription = TopicSubscription.of([topic.name], topics=[topic])

    def subscription(self) -> TopicSubscription:
        return self._subscription

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        now = time.perf_counter()
        self.got |= dict.fromkeys((each.partition for each in partitions), now)
        self.owned |= {each.partition for each in partitions}

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], *, leaving: bool) -> None:
        del leaving
        self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        now = time.perf_counter()
        self.gave |= dict.fromkeys((each.partition for each in partitions), now)
        self.owned -= {each.partition for each in partitions}


def reconcile(client: CoordinatorClient, members: int, partitions: int) -> Reconciled:
    """Let members join a group of the default settings at the same time, and one more afterwards."""
    topic = TopicDescription("orders", _topic_id(), partitions)
    group_id = f"reconciled-{uuid.uuid4().hex[:8]}"
    all_members = [_Member(topic) for _ in range(members + 1)]
    is_over = threading.Event()

    def run(callbacks: _Member) -> None:
        config = MemberConfig(group_id=group_id, group_protocol="consumer")
        with GroupMember(client, callbacks, config) as member:
            while not is_over.is_set():
                member.poll(POLL_SECONDS)
                is_over.wait(0.01)

    with ThreadPoolExecutor(members + 1) as pool:
        try:
            first = all_members[:members]
            began = time.perf_counter()
            done = [pool.submit(run, each) for each in first]
            seconds = _await_shares(first, partitions) - began
            time.sleep(STILL_SECONDS)
            before = {partition: each for each in first for partition in each.owned}
            for each in first:
                each.got.clear()
                each.gave.clear()
            began = time.perf_counter()
            done.append(pool.submit(run, all_members[-1]))
            seconds_of_another = _await_shares(all_members, partitions) - began
            time.sleep(STILL_SECONDS)
        finally:
            is_over.set()
    for future in done:
        future.result()
    gaps = [all_members[-1].got[one] - before[one].gave[one] for one in all_members[-1].got]
    disturbed = sum(len(each.got) for each in first)
    return Reconciled(
        members=members,
        partitions=partitions,
        seconds=round(seconds, 2),
        moved=len(gaps),
        longest_away=round(max(gaps), 2),
        disturbed=disturbed,
        seconds_of_another=round(seconds_of_another, 2),
    )


def _await_shares(members: Sequence[_Member], partitions: int) -> float:
    """Wait until the members own all partitions, evenly; returns when, by ``time.perf_counter``."""

    def is_shared() -> bool:
        sizes = [len(each.owned) for each in members]
        return sum(sizes) == partitions and max(sizes) - min(sizes) <= 1

    wait_until(is_shared, "the members' shares", describe=lambda: str([len(each.owned) for each in members]))
    return time.perf_counter()


def _topic_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def main(
    groups: Annotated[int, typer.Option(help="Groups of either protocol.")] = 1_000,
    rounds: Annotated[int, typer.Option(help="Rounds of either protocol.")] = 3,
    seconds: Annotated[float, typer.Option(help="The length of a round.")] = 15.0,
    members: Annotated[int, typer.Option(help="Members that reconcile.")] = 10,
    partitions: Annotated[int, typer.Option(help="Their partitions.")] = 900,
) -> None:
    """Measure, and print the figures as JSON."""
    # As an exception, SIGTERM ends the broker and the job, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="group-coordinator-consumer-") as folder, EmbeddedBroker() as broker:
        options = {**OPTIONS, "topic-prefix": PREFIX, "checkpoint": str(Path(folder) / "checkpoint")}
        with CoordinatorProcess(broker.bootstrap_servers, Path(folder), options, defaults={}) as job:
            job.start()
            with Events(broker.bootstrap_servers, job.topics.requests, job.topics.responses) as events:
                heartbeats = compare_heartbeats(events, groups, rounds, seconds)
            with CoordinatorClient(broker.bootstrap_servers, topic_prefix=PREFIX) as client:
                reconciled = reconcile(client, members, partitions)
    ratios = {
        "p50": heartbeats.consumer.p50_ms / heartbeats.classic.p50_ms,
        "p99": heartbeats.consumer.p99_ms / heartbeats.classic.p99_ms,
    }
    figures = {"heartbeats": heartbeats, "ratios": ratios, "reconciled": reconciled}
    whole = {"machine": machine(), "versions": versions(), **figures}
    typer.echo(json.dumps(msgspec.to_builtins(whole), indent=2))


if __name__ == "__main__":
    typer.run(main)
