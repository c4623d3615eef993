"""What happens to the topics while the job runs, or between two of its runs."""

import shutil
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.through_job import planned_batches
from tests.recovery.conversation import Conversation, join_request, sync_request
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import TopicReader, append, reading
from tests.support.processes import descendants, executable
from tests.support.request_events import commit, correlation_id, dumped, envelope
from tests.support.topics import create_topic, set_config
from tests.support.waiting import LIMIT_SECONDS, wait_until

NewCoordinator = Callable[..., CoordinatorProcess]

HOUR_MS = 3_600_000
SESSION_MS = 2_000


@pytest.fixture(scope="module")
def running(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    options = {"group.min.session.timeout.ms": 1_000}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("running"), options) as process:
        process.start()
        yield process


@pytest.fixture
def admin(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def answered(coordinator: CoordinatorProcess, responses: TopicReader, request: dict[str, object]) -> TopicReader:
    """Append a request of group ``g`` and wait for its answer."""
    append(coordinator.bootstrap_servers, coordinator.topics.requests, (b"g", dumped(request)))
    key = str(request["correlationId"]).encode()
    responses.first(lambda record: record.key == key, "the answer")
    return responses


def committed(coordinator: CoordinatorProcess) -> int:
    """The offset that group ``g`` has committed."""
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
        fetch = envelope("OffsetFetch", 7, {"groupId": "g"})
        answered(coordinator, responses, fetch)
        answer = responses.first(lambda record: record.key == fetch["correlationId"].encode(), "the offsets")
        return int(answer.value["body"]["topics"][0]["partitions"][0]["committedOffset"])


def process_of_spark(coordinator: CoordinatorProcess) -> int:
    """The process id of the JVM."""
    (jvm,) = (pid for pid in descendants(coordinator.pid) if b"java" in executable(pid))
    return jvm


def test_keys_stay_where_they_are_when_partitions_are_added(
    new_coordinator: NewCoordinator, admin: AdminClient, broker: EmbeddedBroker
) -> None:
    coordinator = new_coordinator()
    coordinator.start()
    topics, group_ids = coordinator.topics, [f"grown-{number}" for number in range(20)]

    def commit_to_each(offset: int) -> set[str]:
        with CoordinatorClient(broker.bootstrap_servers, topic_prefix=topics.prefix) as client:
            for group_id in group_ids:
                partition = PartitionToCommit(0, offset)
                client.offset_commit(OffsetCommitRequest(group_id, [TopicToCommit("t", [partition])]))
            return {group.group_id for group in client.list_groups().groups}

    def places(topic: str) -> dict[bytes | None, set[int]]:
        found: dict[bytes | None, set[int]] = {}
        with reading(broker.bootstrap_servers, topic) as reader:
            for record in reader.to_the_end():
                found.setdefault(record.key, set()).add(record.partition)
        return found

    assert commit_to_each(1) == set(group_ids)
    before = places(topics.journal)
    for topic, count in ((topics.journal, 9), (topics.directory, 3)):
        admin.create_partitions([NewPartitions(topic, count)])[topic].result(LIMIT_SECONDS)
    coordinator.stop()
    coordinator.start()
    with CoordinatorClient(broker.bootstrap_servers, topic_prefix=topics.prefix) as client:
        client.delete_groups(group_ids[:10])
        assert {group.group_id for group in client.list_groups().groups} == set(group_ids[10:])
    assert commit_to_each(2) == set(group_ids)
    assert places(topics.journal) == before
    assert set().union(*places(topics.directory).values()) == {0}


@pytest.mark.long
def test_a_new_partition_of_the_responses_topic_gets_answers_without_a_restart_of_the_job(
    running: CoordinatorProcess, admin: AdminClient
) -> None:
    servers, topics = running.bootstrap_servers, running.topics
    with reading(servers, topics.responses) as responses:
        answered(running, responses, commit("g", 41))
    jvm = process_of_spark(running)
    grown = admin.create_partitions([NewPartitions(topics.responses, 4)])
    grown[topics.responses].result(LIMIT_SECONDS)
    sent: set[bytes] = set()

    def is_answered() -> bool:
        """Send as a client does that has chosen the new partition, until one of its requests is answered."""
        request = commit("g", 42, replyPartition=3)
        sent.add(request["correlationId"].encode())
        append(servers, topics.requests, (b"g", dumped(request)))
        with reading(servers, topics.responses) as responses:
            return any(record.key in sent and record.partition == 3 for record in responses.to_the_end())

    wait_until(is_answered, "an answer in the new partition", pause=0.5)
    assert process_of_spark(running) == jvm
    assert committed(running) == 42


def beat_with_a_time_of(coordinator: CoordinatorProcess, body: dict[str, object], ahead_ms: int) -> None:
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers})
    timestamp = time.time_ns() // 1_000_000 + ahead_ms
    value = dumped(envelope("Heartbeat", 4, body))
    producer.produce(coordinator.topics.requests, value, b"beating", partition=0, timestamp=timestamp)
    assert producer.flush(LIMIT_SECONDS) == 0


def warns_of_clocks(coordinator: CoordinatorProcess, body: dict[str, object]) -> bool:
    """Append as a broker does whose clock is ahead; returns whether the job has reported a difference."""
    beat_with_a_time_of(coordinator, body, HOUR_MS // 2)
    return any("warning: the brokers' clocks are" in line for line in coordinator.output)


@pytest.mark.long
def test_after_a_change_to_create_time_a_client_with_a_slow_clock_keeps_its_membership(
    running: CoordinatorProcess, admin: AdminClient
) -> None:
    servers, topics = running.bootstrap_servers, running.topics
    with reading(servers, topics.responses) as responses:
        clients = Conversation(servers, topics, responses)
        join = join_request("beating") | {"sessionTimeoutMs": SESSION_MS}
        joined = clients.ask("beating", "JoinGroup", 3, join)["body"]
        generation_id, member_id = joined["generationId"], joined["memberId"]
        sync = sync_request("beating", generation_id, member_id, {member_id: b"all"})
        set_config(admin, topics.requests, "message.timestamp.type", "CreateTime")
        try:
            assert clients.ask("beating", "SyncGroup", 3, sync)["errorCode"] == 0
            body = {"groupId": "beating", "generationId": generation_id, "memberId": member_id}
            session_ends = time.monotonic() + 3 * SESSION_MS / 1000
            while time.monotonic() < session_ends:
                beat_with_a_time_of(running, body, -HOUR_MS)
                time.sleep(SESSION_MS / 10_000)
            wait_until(lambda: warns_of_clocks(running, body), "the job warns, without metrics", pause=0.5)
            assert clients.heartbeat("beating", generation_id, member_id) == 0
        finally:
            set_config(admin, topics.requests, "message.timestamp.type", "LogAppendTime")


def test_a_requests_topic_that_is_created_again_ends_the_job_and_needs_a_decision(
    new_coordinator: NewCoordinator, admin: AdminClient
) -> None:
    coordinator = new_coordinator()
    coordinator.start()
    requests = coordinator.topics.requests
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
        for offset in range(5):
            answered(coordinator, responses, commit("g", offset))
    create_again(coordinator.bootstrap_servers, admin, requests)
    assert coordinator.wait() != 0
    message = f"error: topic {requests} was deleted and created again while the job was running"
    assert any(message in line for line in coordinator.output), coordinator.tail()
    assert not any("Traceback" in line for line in coordinator.output), coordinator.tail()

    coordinator.launch()
    assert coordinator.wait() != 0
    message = f"topic {requests} was deleted and created again: checkpoint {coordinator.checkpoint} has read"
    assert any(message in line for line in coordinator.output), coordinator.tail()

    shutil.rmtree(coordinator.checkpoint / "requests-topic")
    coordinator.start()
    assert committed(coordinator) == 4


def create_again(servers: str, admin: AdminClient, topic: str) -> None:
    """Delete the topic and create one of the same name with as many partitions."""
    partitions = len(admin.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic].partitions)
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
    wait_until(lambda: topic not in admin.list_topics(timeout=LIMIT_SECONDS).topics, "the topic is gone")
    create_topic(servers, topic, partitions, {"message.timestamp.type": "LogAppendTime"})


@pytest.mark.long
def test_a_start_after_an_outage_longer_than_retention_says_which_requests_are_lost(
    new_coordinator: NewCoordinator, admin: AdminClient
) -> None:
    coordinator = new_coordinator()
    coordinator.start()
    servers, requests = coordinator.bootstrap_servers, coordinator.topics.requests
    with reading(servers, coordinator.topics.responses) as responses:
        answered(coordinator, responses, commit("g", 7))
    assert coordinator.stop() == 0
    *_, newest = planned_batches(coordinator.checkpoint, requests)
    read = newest.end[0]
    append(servers, requests, *[(correlation_id().encode(), dumped(commit("g", 8))) for _ in range(3)])
    deleted = TopicPartition(requests, 0, read + 2)
    admin.delete_records([deleted])[deleted].result(LIMIT_SECONDS)
    coordinator.start()
    expected = f"{requests} has lost 2 requests that the job had not read, to retention or a deletion (partition 0: "
    assert any(f"{expected}offsets {read} to {read + 1})" in line for line in coordinator.output), coordinator.tail()
    assert committed(coordinator) == 7
