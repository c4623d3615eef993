"""Random scripts through the real Spark job, many at once, with both Python workers alternately on one checkpoint."""

import asyncio
import uuid
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import ResponseEnvelope
from coordinator_logic.timing.sessions import late_answer_ms
from streaming.client.request_reply import RequestReply
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.rows.records import KafkaRecord
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, STOCK, VARIABLE
from tests.oracle.scripts.generate import random_scripts
from tests.oracle.scripts.script import Script
from tests.oracle.through_job import Batch, expected_responses, planned_batches, play, read_records
from tests.support.coordinator_process import QUICK, CoordinatorProcess
from tests.support.kafka_io import reading

SCRIPTS = 24
PHASES = ((ARROW, 8), (STOCK, 5), (ARROW, 5))
"""For each phase its worker, and the number of requests for each group. All phases have the same groups."""

SEED = 9
ANSWER_LIMIT_SECONDS = 120.0
PROTOCOL_OPTIONS = {
    "group.min.session.timeout.ms": 500,
    "group.max.session.timeout.ms": 240_000,
    "group.initial.rebalance.delay.ms": 1_640,
    "offset.metadata.max.bytes": 64,
}
OPTIONS = {**PROTOCOL_OPTIONS, "spark.sql.streaming.minBatchesToRetain": "100000"}

WORKERS = {ARROW: "the Arrow-native worker", STOCK: "pyspark's own worker"}

Sent = dict[str, list[Future[ResponseEnvelope]]]


def settings_of(coordinator: CoordinatorProcess) -> Settings:
    """The settings of the job's operator, with all starts of the job so far."""
    config = msgspec.convert(PROTOCOL_OPTIONS, CoordinatorConfig)
    config = msgspec.structs.replace(
        config,
        requests_topic=coordinator.topics.requests,
        requests_partitions=QUICK["request-partitions"],
        late_answer_ms=late_answer_ms(int(str(QUICK["trigger-interval-ms"]))),
    )
    files = [path for path in (coordinator.checkpoint / "starts").iterdir() if path.name.isdigit()]
    starts = [msgspec.json.decode(path.read_bytes(), type=Start) for path in files]
    starts.sort(key=lambda start: start.started_at)
    responses = int(str(QUICK["response-partitions"]))
    return Settings(coordinator.topics, responses, config, tuple(starts), has_deadline_checks=True)


@pytest.mark.timeout(900)
def test_the_jobs_responses_are_those_of_the_log_byte_for_byte(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The variable would win over the option, which changes with each phase.
    monkeypatch.delenv(VARIABLE, raising=False)
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path, OPTIONS)
    sent: Sent = {f"through-job-{uuid.uuid4().hex[:8]}": [] for _ in range(SCRIPTS)}
    channel: RequestReply | None = None
    with ExitStack() as stack:
        stack.callback(coordinator.kill)
        for number, (worker, requests) in enumerate(PHASES):
            coordinator.options["python-worker"] = worker
            coordinator.start()
            assert any(f"Python workers: {WORKERS[worker]}" in line for line in coordinator.output)
            channel = channel or stack.enter_context(closing(request_reply(coordinator)))
            scripts = random_scripts(SCRIPTS, seed_number=SEED + number, requests=requests)
            played = asyncio.run(play_all(dict(zip(sent, scripts, strict=True)), channel))
            for group_id, futures in played.items():
                sent[group_id] += futures
            # After the stop, everything that the job has read is in its checkpoint.
            coordinator.stop()
        compared = compare(coordinator, sent)
    assert compared > SCRIPTS * sum(requests for _, requests in PHASES) * 0.8


def request_reply(coordinator: CoordinatorProcess) -> RequestReply:
    """A client's channel; call it after the coordinator's first start, which creates the topics."""
    return RequestReply(coordinator.bootstrap_servers, coordinator.topics, "oracle", "/127.0.0.1", {}, 60.0, 60.0)


async def play_all(groups: Mapping[str, Script], channel: RequestReply) -> Sent:
    """Play all scripts at once."""
    played = await asyncio.gather(*(play(script, group_id, channel) for group_id, script in groups.items()))
    return dict(zip(groups, played, strict=True))


def compare(coordinator: CoordinatorProcess, sent: Sent) -> int:
    """Compare all responses, and that no other request was answered; returns the number of responses."""
    topic = coordinator.topics.requests
    records = read_records(coordinator.bootstrap_servers, topic)
    batches = planned_batches(coordinator.checkpoint, topic)
    compared = 0
    for group_id, futures_in_order in sent.items():
        answers = expected_responses(group_id, records[group_id], batches, settings_of(coordinator))
        # The job's own deadline checks are not answered.
        values = [record.value or b"" for record in records[group_id] if record.value != DEADLINE_CHECK]
        requests = [msgspec.json.decode(value)["correlationId"].encode() for value in values]
        futures = dict(zip(requests, futures_in_order, strict=True))
        wait([futures[correlation_id] for correlation_id in answers], ANSWER_LIMIT_SECONDS)
        received = {correlation_id: future.result() for correlation_id, future in futures.items() if future.done()}
        due = {key: msgspec.json.decode(value, type=ResponseEnvelope) for key, value in answers.items()}
        assert received == due, "\n".join(what_the_job_did(coordinator, group_id, records[group_id], batches))
        compared += len(received)
    return compared


def what_the_job_did(
    coordinator: CoordinatorProcess, group_id: str, requests: list[KafkaRecord], batches: list[Batch]
) -> list[str]:
    """A group's requests by batch, and everything that the job has sent about it, a line each."""
    lines = [f"starts: {settings_of(coordinator).starts}"]
    read: dict[int, int] = {}
    for number, batch in enumerate(batches):
        new = [each for each in requests if read.get(each.partition, 0) <= each.offset < batch.end[each.partition]]
        read = batch.end
        lines += [f"batch {number} at {batch.time}: {each.timestamp} {each.offset} {each.value!r}" for each in new]
    topics = coordinator.topics
    for topic in (topics.responses, topics.journal, topics.rejects):
        with reading(coordinator.bootstrap_servers, topic) as reader:
            sent = [each for each in reader.to_the_end() if group_id.encode() in (each.key or b"") + (each.raw or b"")]
        lines += [f"{topic} at {each.timestamp}: {each.partition}/{each.offset} {each.raw!r}" for each in sent]
    return lines
