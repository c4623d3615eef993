"""Scripts through the real job: appended to its request topic as events, and judged by the log itself.

Time is data: when the broker appended a request stands in the topic, and when a batch was and how far it read stands in
the checkpoint. So what the job must have answered can be told afterwards, by our logic alone and to the byte. That
the logic answers as a broker does is what the other tests here are about.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from coordinator_logic.handlers import APIS
from coordinator_logic.messages import ResponseEnvelope
from streaming.client.request_reply import RequestReply
from streaming.operator import Settings, StateRow, process
from streaming.wire import KafkaRecord
from tests.oracle.script import Json, Knowledge, Script, Send, Wait

SLOWER = 4
"""By how much times are longer than in the scripts: an answer takes the job a batch."""
PARKED_AFTER_SECONDS = 1.0
DEADLINE_SECONDS = 2.0
TIMEOUT_SECONDS = 300.0
TIMES = ("sessionTimeoutMs", "rebalanceTimeoutMs")
PRODUCERS = {0: 1_000, 1: 1_001}


async def play(script: Script, group_id: str, channel: RequestReply) -> list[Future[ResponseEnvelope]]:
    """Send a script's requests as its actors would, each when the one before is answered or taken for parked."""
    knowledge = Knowledge(group_id, PRODUCERS)
    sent: dict[Future[ResponseEnvelope], Send] = {}
    unlearned: list[Future[ResponseEnvelope]] = []
    for item in script.steps:
        if isinstance(item, Wait):
            await asyncio.sleep(DEADLINE_SECONDS if item.ms is None else item.ms * SLOWER / 1000)
            continue
        body = knowledge.resolve(Send(item.actor, item.api, item.version, _slower(item.body)))
        future = channel.send(group_id, item.api, item.version, body, TIMEOUT_SECONDS)
        sent[future] = item
        unlearned.append(future)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PARKED_AFTER_SECONDS)
        for answered in [future for future in unlearned if future.done()]:
            unlearned.remove(answered)
            envelope = answered.result()
            response_type = APIS[envelope.api].response_type
            knowledge.learn(sent[answered].actor, msgspec.json.decode(envelope.body, type=response_type))
    return list(sent)


def _slower(body: dict[str, Json]) -> dict[str, Json]:
    return {key: value * SLOWER if key in TIMES else value for key, value in body.items()}


# ---- what the job was given ------------------------------------------------------------------------------------


def read_records(bootstrap_servers: str, topic: str) -> dict[str, list[KafkaRecord]]:
    """The request records of each group, in the order in which it takes them."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False})
    try:
        numbers = consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic].partitions
        partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers]
        consumer.assign(partitions)
        left = sum(consumer.get_watermark_offsets(partition, TIMEOUT_SECONDS)[1] for partition in partitions)
        records = defaultdict(list)
        while left:
            for message in consumer.consume(left, 1.0):
                left -= 1
                record = _record(message)
                records[(record.key or b"").decode()].append(record)
    finally:
        consumer.close()
    return {group_id: sorted(found, key=lambda record: record[:3]) for group_id, found in records.items()}


def _record(message: Any) -> KafkaRecord:
    assert not message.error(), message.error()
    return KafkaRecord(message.timestamp()[1], message.partition(), message.offset(), message.key(), message.value())


class Batch(NamedTuple):
    """A batch as it was planned: its time (ms), and the offset behind the last that it read, by partition."""

    time: int
    end: dict[int, int]


def planned_batches(checkpoint: Path, topic: str) -> list[Batch]:
    """All batches of a job, from the first on."""
    plans = sorted((path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()), key=_batch_id)
    assert [_batch_id(plan) for plan in plans] == list(range(len(plans))), "the job has forgotten its first batches"
    batches = []
    for plan in plans:
        _, about, offsets = plan.read_text().splitlines()
        end = msgspec.json.decode(offsets)[topic]
        time = msgspec.json.decode(about)["batchTimestampMs"]
        batches.append(Batch(time, {int(partition): offset for partition, offset in end.items()}))
    return batches


def _batch_id(plan: Path) -> int:
    return int(plan.name)


# ---- what it must have answered --------------------------------------------------------------------------------


def expected(
    group_id: str, records: Sequence[KafkaRecord], batches: Sequence[Batch], settings: Settings
) -> Mapping[bytes, bytes]:
    """The answers of a group in these batches, by correlation id: called as Spark calls it, with data or when due."""
    answers: dict[bytes, bytes] = {}
    stored: StateRow | None = None
    due: int | None = None
    read: dict[int, int] = {}
    for batch in batches:
        new = [r for r in records if read.get(r.partition, 0) <= r.offset < batch.end[r.partition]]
        read = batch.end
        if not new and (due is None or batch.time <= due):
            continue
        outcome = process(settings, group_id, new, stored, batch.time)
        stored = outcome.state
        due = None if outcome.wake_at is None or stored is None else max(outcome.wake_at, batch.time + 1)
        for row in outcome.rows:
            if row.topic == settings.topics.responses:
                assert row.key is not None
                assert row.value is not None
                answers[row.key] = row.value
    return answers
