"""Making and checking the topics, on a real broker."""

import uuid

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.cimpl import NewTopic

from streaming.broker import EmbeddedBroker
from streaming.errors import CannotRun
from streaming.topics import Partitions, TopicLayout, TopicNames, ensure_topics

LIMIT_SECONDS = 30.0


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


def make(client_config: dict[str, str], topic: str, partitions: int, **config: str) -> None:
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({**client_config})
    for created in admin.create_topics([NewTopic(topic, partitions, 1, config=dotted)]).values():
        created.result(LIMIT_SECONDS)


def test_missing_topics_are_made(client_config: dict[str, str], names: TopicNames) -> None:
    assert ensure_topics(client_config, names, TopicLayout(3, 5)) == Partitions(3, 5, 1)
    requests = settings(client_config, names.requests)
    assert requests["message.timestamp.type"] == "LogAppendTime"
    assert requests["max.message.bytes"] == "1048576"
    assert settings(client_config, names.directory)["cleanup.policy"] == "compact"
    for topic in (names.responses, names.journal, names.directory, names.rejects):
        assert int(settings(client_config, topic)["max.message.bytes"]) > 8 * 1024 * 1024
    topics = AdminClient({**client_config}).list_topics(timeout=LIMIT_SECONDS).topics
    assert len(topics[names.requests].partitions) == 3


def test_what_exists_is_taken_as_it_is(client_config: dict[str, str], names: TopicNames) -> None:
    ensure_topics(client_config, names, TopicLayout(3, 5))
    assert ensure_topics(client_config, names, TopicLayout()) == Partitions(3, 5, 1)
    assert ensure_topics(client_config, names, TopicLayout(3, 5)) == Partitions(3, 5, 1)


def test_every_problem_gets_a_line_that_names_the_remedy(client_config: dict[str, str], names: TopicNames) -> None:
    make(client_config, names.requests, 2, message_timestamp_type="CreateTime")
    make(client_config, names.responses, 2, max_message_bytes="1000000")
    make(client_config, names.directory, 1, cleanup_policy="delete", max_message_bytes="9000000")
    with pytest.raises(CannotRun) as refused:
        ensure_topics(client_config, names, TopicLayout(request_partitions=4))
    problems = str(refused.value).splitlines()
    assert len(problems) == 4
    assert "has message.timestamp.type=CreateTime, it needs LogAppendTime" in problems[0]
    assert f"--entity-name {names.requests} --add-config message.timestamp.type=LogAppendTime" in problems[0]
    assert "has 2 partitions, the options say 4" in problems[1]
    assert "has max.message.bytes=1000000, it needs 8454144 or more" in problems[2]
    assert "has cleanup.policy=delete, it needs compact" in problems[3]


def test_a_topic_that_cannot_be_made_is_named(client_config: dict[str, str], names: TopicNames) -> None:
    with pytest.raises(CannotRun, match=r"topic .* cannot be created: .*replication"):
        ensure_topics(client_config, names, TopicLayout(replication_factor=3))


def test_a_cluster_that_does_not_answer_is_named(names: TopicNames, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.topics.ADMIN_LIMIT_SECONDS", 1.0)
    with pytest.raises(CannotRun, match=r"^Kafka at 127\.0\.0\.1:1: "):
        ensure_topics({"bootstrap.servers": "127.0.0.1:1"}, names, TopicLayout())
