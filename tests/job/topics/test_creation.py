"""Creation and checks of the topics, on a real broker."""

import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from streaming.contract.errors import CannotRun
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.topics.creation import admin_client, ensure_topics
from streaming.job.topics.layout import Partitions, TopicLayout
from streaming.job.topics.losses import end_offsets, has_records
from tests.recovery.chaos.cluster import three_brokers
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS


@pytest.fixture
def names() -> TopicNames:
    return TopicNames(f"topics-{uuid.uuid4().hex[:8]}-")


@pytest.fixture
def client_config(broker: EmbeddedBroker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def settings(client_config: dict[str, str], topic: str) -> dict[str, str]:
    admin, resource = AdminClient({**client_config}), ConfigResource(ConfigResource.Type.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(LIMIT_SECONDS)
    return {key: entry.value for key, entry in described.items()}


def create(client_config: dict[str, str], topic: str, partitions: int, **config: str) -> None:
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    create_topic(client_config["bootstrap.servers"], topic, partitions, dotted)


def partitions(client_config: dict[str, str], names: TopicNames, layout: TopicLayout) -> Partitions:
    return ensure_topics(client_config, names, layout).partition_counts(names)


def test_missing_topics_are_created(client_config: dict[str, str], names: TopicNames) -> None:
    assert partitions(client_config, names, TopicLayout(3, 5)) == Partitions(3, 5, 1)
    requests = settings(client_config, names.requests)
    assert requests["message.timestamp.type"] == "LogAppendTime"
    assert requests["max.message.bytes"] == "1048576"
    assert settings(client_config, names.directory)["cleanup.policy"] == "compact"
    for topic in (names.responses, names.journal, names.directory, names.rejects):
        assert int(settings(client_config, topic)["max.message.bytes"]) > 8 * 1024 * 1024
    topics = AdminClient({**client_config}).list_topics(timeout=LIMIT_SECONDS).topics
    assert len(topics[names.requests].partitions) == 3


def test_existing_topics_are_left_unchanged(client_config: dict[str, str], names: TopicNames) -> None:
    ensure_topics(client_config, names, TopicLayout(3, 5))
    assert partitions(client_config, names, TopicLayout()) == Partitions(3, 5, 1)
    assert partitions(client_config, names, TopicLayout(3, 5)) == Partitions(3, 5, 1)


def test_each_problem_is_reported_in_a_line_with_its_remedy(client_config: dict[str, str], names: TopicNames) -> None:
    create(client_config, names.requests, 2, message_timestamp_type="CreateTime", max_message_bytes="98000")
    create(client_config, names.responses, 2, max_message_bytes="1000000")
    create(client_config, names.directory, 1, cleanup_policy="delete", max_message_bytes="9000000")
    with pytest.raises(CannotRun) as refused:
        ensure_topics(client_config, names, TopicLayout(request_partitions=4))
    problems = str(refused.value).splitlines()
    assert len(problems) == 5
    assert "has message.timestamp.type=CreateTime, it needs LogAppendTime" in problems[0]
    assert f"--entity-name {names.requests} --add-config message.timestamp.type=LogAppendTime" in problems[0]
    # The job appends deadline checks, and a group id may have 32,767 bytes.
    assert "has max.message.bytes=98000, it needs 98303 or more" in problems[1]
    assert "has 2 partitions, the options say 4" in problems[2]
    assert "has max.message.bytes=1000000, it needs 8454144 or more" in problems[3]
    assert "has cleanup.policy=delete, it needs compact" in problems[4]


def test_a_topic_that_cannot_be_created_is_named(client_config: dict[str, str], names: TopicNames) -> None:
    with pytest.raises(CannotRun, match=r"topic .* cannot be created: .*replication"):
        ensure_topics(client_config, names, TopicLayout(replication_factor=3))


def test_an_unreachable_cluster_is_named(names: TopicNames, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.job.topics.creation.ADMIN_LIMIT_SECONDS", 1.0)
    with pytest.raises(CannotRun, match=r"^Kafka at 127\.0\.0\.1:1 does not answer"):
        ensure_topics({"bootstrap.servers": "127.0.0.1:1"}, names, TopicLayout())


def test_the_first_start_on_several_brokers_waits_until_all_of_them_know_the_topics(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = three_brokers(tmp_path)
        stack.callback(cluster.stop)
        client_config = {"bootstrap.servers": cluster.bootstrap_servers}
        # Of 100 starts that did not wait, 55 failed.
        for number in range(15):
            names = TopicNames(f"start-{number}-")
            counts = partitions(client_config, names, TopicLayout(4, 4))
            with admin_client(client_config) as admin:
                assert not has_records(admin, names.journal, counts.journal)
                assert end_offsets(admin, names.requests, counts.requests) == dict.fromkeys(range(4), 0)
