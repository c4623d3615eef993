"""A few dozen random scripts at once through the real Spark job, with both Python workers in turn on one checkpoint."""

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
from streaming.broker import EmbeddedBroker
from streaming.client.request_reply import RequestReply
from streaming.operator import Settings
from streaming.python_worker import ARROW, STOCK, VARIABLE
from tests.oracle.generate import random_scripts
from tests.oracle.script import Script
from tests.oracle.through_job import expected, planned_batches, play, read_records
from tests.streaming.coordinator_process import QUICK, CoordinatorProcess

SCRIPTS = 24
PHASES = ((ARROW, 8), (STOCK, 5), (ARROW, 5))
"""The worker of a phase, and how many requests each group is sent in it. The groups are the same in all of them."""

SEED = 9
ANSWER_LIMIT_SECONDS = 60.0
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
    """What the job's operator is told; each batch finds its own start among all of them."""
    config = msgspec.convert(PROTOCOL_OPTIONS, CoordinatorConfig)
    config = msgspec.structs.replace(
        config, requests_topic=coordinator.topics.requests, requests_partitions=QUICK["request-partitions"]
    )
    starts = sorted(int(path.name) for path in (coordinator.checkpoint / "starts").iterdir() if path.name.isdigit())
    return Settings(coordinator.topics, int(str(QUICK["response-partitions"])), config, tuple(starts))


@pytest.mark.timeout(400)
def test_the_job_answers_to_the_byte_what_the_log_says(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would win over the option, which changes from phase to phase.
    monkeypatch.delenv(VARIABLE, raising=False)
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path, OPTIONS)
    sent: Sent = {f"through-job-{uuid.uuid4().hex[:8]}": [] for _ in range(SCRIPTS)}
    channel: RequestReply | None = None
    with ExitStack() as stack:
        stack.callback(coordinator.kill)
        for number, (worker, requests) in enumerate(PHASES):
            coordinator.options["python-worker"] = worker
            coordinator.start()
            assert any(f"python workers: {WORKERS[worker]}" in line for line in coordinator.said)
            channel = channel or stack.enter_context(closing(request_reply(coordinator)))
            scripts = random_scripts(SCRIPTS, seed_number=SEED + number, requests=requests)
            played = asyncio.run(play_all(dict(zip(sent, scripts, strict=True)), channel))
            for group_id, futures in played.items():
                sent[group_id] += futures
            # From here on it can answer nothing more, and all that it has read is in its checkpoint.
            coordinator.stop()
        compared = compare(coordinator, sent)
    assert compared > SCRIPTS * sum(requests for _, requests in PHASES) * 0.8


def request_reply(coordinator: CoordinatorProcess) -> RequestReply:
    """A client's channel; the topics are there only when the coordinator has been."""
    return RequestReply(coordinator.bootstrap_servers, coordinator.topics, "oracle", "/127.0.0.1", {}, 60.0)


async def play_all(groups: Mapping[str, Script], channel: RequestReply) -> Sent:
    """Play all scripts at once."""
    played = await asyncio.gather(*(play(script, group_id, channel) for group_id, script in groups.items()))
    return dict(zip(groups, played, strict=True))


def compare(coordinator: CoordinatorProcess, sent: Sent) -> int:
    """How many answers were compared; who was not answered must not have been."""
    topic = coordinator.topics.requests
    records = read_records(coordinator.bootstrap_servers, topic)
    batches = planned_batches(coordinator.checkpoint, topic)
    compared = 0
    for group_id, futures_in_order in sent.items():
        answers = expected(group_id, records[group_id], batches, settings_of(coordinator))
        requests = [msgspec.json.decode(record.value or b"")["correlationId"].encode() for record in records[group_id]]
        futures = dict(zip(requests, futures_in_order, strict=True))
        wait([futures[correlation_id] for correlation_id in answers], ANSWER_LIMIT_SECONDS)
        told = {correlation_id: future.result() for correlation_id, future in futures.items() if future.done()}
        due = {key: msgspec.json.decode(value, type=ResponseEnvelope) for key, value in answers.items()}
        assert told == due
        compared += len(told)
    return compared
