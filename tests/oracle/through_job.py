"""Run scripts through the real job, and compute the expected responses from its request topic and checkpoint.

The topic has the append time of each request, and the checkpoint has the time and the end offsets of each batch. Our
logic computes from these the responses that the job must have sent, byte for byte. The other tests of this package
compare the logic with a broker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from coordinator_logic.apis import APIS
from coordinator_logic.messages import ResponseEnvelope
from streaming.client.request_reply import RequestReply
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.oracle.scripts.script import Json, References, Script, Send, Wait
from tests.support.kafka_io import reading

TIME_FACTOR = 4
"""The factor by which timeouts are longer than in the scripts: each response of the job takes a batch."""
PARKED_AFTER_SECONDS = 1.0
DEADLINE_SECONDS = 2.0
TIMEOUT_SECONDS = 1_800.0
TIMES = ("sessionTimeoutMs", "rebalanceTimeoutMs")
PRODUCERS = {0: 1_000, 1: 1_001}


async def play(script: Script, group_id: str, channel: RequestReply) -> list[Future[ResponseEnvelope]]:
    """Send the requests of a script, each after the response of the previous one or when that one counts as parked."""
    references = References(group_id, PRODUCERS)
    sent: dict[Future[ResponseEnvelope], Send] = {}
    unlearned: list[Future[ResponseEnvelope]] = []
    for item in script.steps:
        if isinstance(item, Wait):
            await asyncio.sleep(DEADLINE_SECONDS if item.ms is None else item.ms * TIME_FACTOR / 1000)
            continue
        body = references.resolve(Send(item.actor, item.api, item.version, _with_longer_timeouts(item.body)))
        future = channel.send(group_id, item.api, item.version, body, TIMEOUT_SECONDS)
        sent[future] = item
        unlearned.append(future)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PARKED_AFTER_SECONDS)
        for answered in [future for future in unlearned if future.done()]:
            unlearned.remove(answered)
            envelope = answered.result()
            response_type = APIS[envelope.api].response_type
            references.learn(sent[answered].actor, msgspec.json.decode(envelope.body, type=response_type))
    return list(sent)


def _with_longer_timeouts(body: dict[str, Json]) -> dict[str, Json]:
    return {key: value * TIME_FACTOR if key in TIMES else value for key, value in body.items()}


# ---- the input of the job --------------------------------------------------------------------------------------


def read_records(bootstrap_servers: str, topic: str) -> dict[str, list[KafkaRecord]]:
    """Read the request records of each group, in the order in which the group handles them."""
    records: dict[str, list[KafkaRecord]] = defaultdict(list)
    with reading(bootstrap_servers, topic) as reader:
        for record in reader.to_the_end():
            group_id = (record.key or b"").decode()
            records[group_id].append(
                KafkaRecord(record.timestamp, record.partition, record.offset, record.key, record.raw)
            )
    return {
        group_id: sorted(group_records, key=lambda record: record[:3]) for group_id, group_records in records.items()
    }


class Batch(NamedTuple):
    """A planned batch: its time (ms since the epoch), and its end offset by partition, exclusive."""

    time: int
    end: dict[int, int]


def planned_batches(checkpoint: Path, topic: str) -> list[Batch]:
    """Read all batches of a job from its checkpoint."""
    plans = sorted((path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()), key=_batch_id)
    assert [_batch_id(plan) for plan in plans] == list(range(len(plans))), "the checkpoint has lost its first batches"
    batches = []
    for plan in plans:
        _, metadata, offsets = plan.read_text().splitlines()
        end = msgspec.json.decode(offsets)[topic]
        time = msgspec.json.decode(metadata)["batchTimestampMs"]
        batches.append(Batch(time, {int(partition): offset for partition, offset in end.items()}))
    return batches


def _batch_id(plan: Path) -> int:
    return int(plan.name)


# ---- the expected responses ------------------------------------------------------------------------------------


def expected_responses(
    group_id: str, records: Sequence[KafkaRecord], batches: Sequence[Batch], settings: Settings
) -> Mapping[bytes, bytes]:
    """Compute the responses of a group by correlation id; call the operator for data and timeouts, as Spark does."""
    responses: dict[bytes, bytes] = {}
    stored: StateRow | None = None
    due: int | None = None
    read: dict[int, int] = {}
    for batch in batches:
        new = [r for r in records if read.get(r.partition, 0) <= r.offset < batch.end[r.partition]]
        read = batch.end
        if not new and (due is None or batch.time <= due):
            continue
        start = [start for start in settings.starts if start.started_at <= batch.time][-1]
        outcome = process(settings.of(start), group_id, new, stored, batch.time)
        stored = outcome.state
        due = None if outcome.wake_at is None or stored is None else max(outcome.wake_at, batch.time + 1)
        for row in outcome.rows:
            if row.topic == settings.topics.responses:
                assert row.key is not None
                assert row.value is not None
                responses[row.key] = row.value
    return responses
