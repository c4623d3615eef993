"""A job whose trigger interval is longer than the test: batches begin for requests that somebody waits for."""

from collections.abc import Iterator

import pytest

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest, OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.job.wake_events.test_silence import await_silence, batches
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, dumped
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS

ROUNDS = 5
LONG_MS = 3_600_000
FAR_MORE_THAN_THERE_ARE = 1_000


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    options = {"trigger-interval-ms": LONG_MS, "cpu-budget": FAR_MORE_THAN_THERE_ARE, "request-partitions": 1}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("paced"), options) as process:
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
