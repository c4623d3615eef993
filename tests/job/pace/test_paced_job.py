"""A job whose trigger interval is longer than the test: batches begin for requests that somebody waits for."""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest, OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.pace.pace_thread import ANYWAY_SECONDS
from tests.job.wake_events.test_silence import await_silence, batches
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, dumped
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

ROUNDS = 5
LONG_MS = 3_600_000
FAR_MORE_THAN_THERE_ARE = 1_000
REQUESTS_PER_BATCH = 5


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    folder = tmp_path_factory.mktemp("paced")
    options = {
        "trigger-interval-ms": LONG_MS,
        "cpu-budget": FAR_MORE_THAN_THERE_ARE,
        "request-partitions": 1,
        "max-requests-per-batch": REQUESTS_PER_BATCH,
        "progress-file": str(folder / "progress"),
    }
    with CoordinatorProcess(broker.bootstrap_servers, folder, options) as process:
        process.start()
        yield process


@pytest.fixture
def client(job: CoordinatorProcess) -> Iterator[CoordinatorClient]:
    with CoordinatorClient(job.bootstrap_servers, topic_prefix=job.topics.prefix) as connected:
        yield connected


def committing(group_id: str) -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id, [TopicToCommit("topic", [PartitionToCommit(0, 1)])])


def test_heartbeats_are_answered_with_the_commit_that_follows_them(
    job: CoordinatorProcess, client: CoordinatorClient
) -> None:
    """Each heartbeat is in the log before its commit is sent: if it began a batch, most rounds would take two."""
    client.offset_commit(committing("first"))
    await_silence(job, 1.0)
    before = batches(job)
    for number in range(ROUNDS):
        group = f"group-{number}"
        heartbeat = client.ask(apis.HEARTBEAT, group, HeartbeatRequest(group, 1, "nobody"))
        with reading(job.bootstrap_servers, job.topics.requests) as requests:
            requests.first(lambda record: record.key == group.encode(), "the heartbeat is appended")  # noqa: B023
        assert not heartbeat.done()
        client.offset_commit(committing("other"))
        assert heartbeat.result(LIMIT_SECONDS).error_code == Error.UNKNOWN_MEMBER_ID
    assert batches(job) == before + ROUNDS


def test_a_sender_that_says_nothing_about_waiting_is_answered_at_once(job: CoordinatorProcess) -> None:
    """Senders in other languages need not know the header."""
    group = unique("foreign")
    request = commit(group, 7)
    append(job.bootstrap_servers, job.topics.requests, (group.encode(), dumped(request)))
    with reading(job.bootstrap_servers, job.topics.responses) as responses:
        responses.first(lambda record: record.key == request["correlationId"].encode(), "the response")


def test_a_backlog_is_worked_off_without_a_further_request(job: CoordinatorProcess) -> None:
    """Every 5 s the query looks in any case: batches that follow each other are begun by something else."""
    await_silence(job, 1.0)
    requests = [commit(unique("waiting"), 7) for _ in range(10 * REQUESTS_PER_BATCH)]
    records = [(request["body"]["groupId"].encode(), dumped(request)) for request in requests]
    append(job.bootstrap_servers, job.topics.requests, *records, partition=0)
    last = requests[-1]["correlationId"].encode()
    with reading(job.bootstrap_servers, job.topics.responses) as responses:
        responses.first(lambda record: record.key == last, "the last response")
    wait_until(lambda: len(waits_before_followers(job)) >= 10 - 1, "the reports of the batches")
    assert median(waits_before_followers(job)) < ANYWAY_SECONDS / 2


def waits_before_followers(job: CoordinatorProcess) -> list[float]:
    """For each batch that followed one which had read as much as it may: how long nothing ran, in seconds."""
    reports = [json.loads(line) for line in Path(str(job.options["progress-file"])).read_text().splitlines()]
    waits = []
    for before, after in pairwise(reports):
        if before["numInputRows"] == REQUESTS_PER_BATCH:
            began, begins = (datetime.fromisoformat(each["timestamp"]) for each in (before, after))
            waits.append((begins - began).total_seconds() - before["batchDuration"] / 1000)
    return waits
