"""Settings of existing topics that keep the job from running, and settings that are only risky."""

import time
import uuid

import pytest
from confluent_kafka import KafkaError, Message, Producer, Uuid
from confluent_kafka.admin import AdminClient

from streaming.contract.errors import CannotRun
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.inspection import (
    ADMIN_LIMIT_SECONDS,
    ExistingTopic,
    TopicInspection,
    inspect_topics,
    risks_of,
    text_of_id,
    topic_settings,
)
from streaming.job.topics.layout import DAY_MS, TopicLayout, required_topics
from tests.support.kafka_io import reading
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS

APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def names() -> TopicNames:
    return TopicNames(f"inspection-{uuid.uuid4().hex[:8]}-")


def inspected(broker: EmbeddedBroker, names: TopicNames) -> TopicInspection:
    return inspect_topics(AdminClient({"bootstrap.servers": broker.bootstrap_servers}), names, TopicLayout())


def test_topics_that_the_job_has_created_have_neither_problems_nor_risks(
    broker: EmbeddedBroker, names: TopicNames
) -> None:
    ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, names, TopicLayout())
    found = inspected(broker, names)
    assert (found.missing, found.problems, found.risks) == ([], [], [])


def test_a_topic_that_the_asked_broker_does_not_know_has_no_settings(broker: EmbeddedBroker, names: TopicNames) -> None:
    # As on a cluster whose other broker has described a topic that was created a moment ago.
    create_topic(broker.bootstrap_servers, names.rejects, config=APPEND_TIME)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    settings = topic_settings(admin, [names.requests, names.rejects], ADMIN_LIMIT_SECONDS)
    assert [*settings] == [names.rejects]
    assert settings[names.rejects].items() >= APPEND_TIME.items()


def test_a_topic_on_which_no_record_can_be_acknowledged_is_refused(broker: EmbeddedBroker, names: TopicNames) -> None:
    create_topic(broker.bootstrap_servers, names.rejects, config={"min.insync.replicas": "2"})
    with pytest.raises(CannotRun) as refused:
        ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, names, TopicLayout())
    line = next(line for line in str(refused.value).splitlines() if "min.insync.replicas" in line)
    assert "has min.insync.replicas=2 and 1 replica: no record can be acknowledged" in line
    assert "--add-config min.insync.replicas=1" in line


@pytest.mark.parametrize(
    ("topic", "config", "risk"),
    [
        ("requests", {"retention.ms": "60000"}, "retention.ms=60000: requests are deleted unread when the job is away"),
        ("requests", {"retention.bytes": "1000000"}, "retention.bytes=1000000: requests may be deleted unread"),
        ("requests", {"max.message.bytes": "100000"}, "max.message.bytes=100000: clients cannot send larger requests"),
        ("responses", {"retention.ms": "1000"}, "retention.ms=1000: a slow client loses answers"),
        ("directory", {"delete.retention.ms": "1000"}, "delete.retention.ms=1000: a reader that is disconnected"),
        ("journal", {"unclean.leader.election.enable": "true"}, "acknowledged records may be lost"),
        ("journal", {"message.timestamp.type": "CreateTime"}, "the records of a writer whose clock is wrong"),
    ],
)
def test_a_risky_setting_is_named_with_its_consequence_and_remedy(
    broker: EmbeddedBroker, names: TopicNames, topic: str, config: dict[str, str], risk: str
) -> None:
    create_topic(broker.bootstrap_servers, getattr(names, topic), config=APPEND_TIME | config)
    (found,) = inspected(broker, names).risks
    assert risk in found
    assert getattr(names, topic) in found
    assert "kafka-configs.sh" in found


@pytest.mark.parametrize("topic", ["directory", "transactions", "coordinators"])
def test_partitions_that_were_added_to_a_topic_of_one_are_named(
    broker: EmbeddedBroker, names: TopicNames, topic: str
) -> None:
    config = APPEND_TIME | {"cleanup.policy": "compact"}
    create_topic(broker.bootstrap_servers, getattr(names, topic), 3, config)
    (found,) = inspected(broker, names).risks
    assert found.startswith(f"topic {getattr(names, topic)} has 3 partitions: its keys stay in those")


def test_writers_whose_clocks_are_wrong_can_write_to_the_topics_that_the_job_has_created(
    broker: EmbeddedBroker, names: TopicNames
) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers}
    ensure_topics(config, names, TopicLayout())
    errors: list[int | None] = []

    def on_delivery(error: KafkaError | None, _record: Message) -> None:
        errors.append(None if error is None else error.code())

    producer = Producer(config)
    topics = (names.requests, names.responses, names.journal, names.directory, names.transactions, names.rejects)
    for topic in topics:
        for wrong_ms in (-8 * DAY_MS, 8 * DAY_MS):
            at = int(time.time() * 1000) + wrong_ms
            producer.produce(topic, b"{}", b"key", timestamp=at, on_delivery=on_delivery)
    assert producer.flush(LIMIT_SECONDS) == 0
    assert errors == [None] * 2 * len(topics)
    for topic in topics:
        with reading(broker.bootstrap_servers, topic) as reader:
            times = [record.timestamp for record in reader.to_the_end()]
        assert all(abs(at - time.time() * 1000) < DAY_MS for at in times), topic


def test_unlimited_retention_is_no_risk(broker: EmbeddedBroker, names: TopicNames) -> None:
    create_topic(
        broker.bootstrap_servers, names.requests, config=APPEND_TIME | {"retention.ms": "-1", "retention.bytes": "-1"}
    )
    assert inspected(broker, names).risks == []


def test_a_topics_id_is_a_name_of_a_file() -> None:
    # Kafka's Uuid(-1, -1) prints as 22 characters of its URL-safe base64; librdkafka prints slashes.
    assert text_of_id(Uuid(-1, -1)) == "_____________________w"
    assert text_of_id(Uuid(-289360691352306693, -289360691352306693)) == "-_v7-_v7-_v7-_v7-_v7-w"
    assert text_of_id(Uuid(0, 0)) is None


SOUND = {
    "cleanup.policy": "delete",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "9000000",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def existing(names: TopicNames, replicas: int, **settings: str) -> list[ExistingTopic]:
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return [ExistingTopic(topic, 1, replicas, {**SOUND, **dotted}) for topic in required_topics(names, TopicLayout())]


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync", "risk"),
    [
        (1, 1, 1, None),
        (3, 1, 1, "one replica on a cluster of 3 brokers"),
        (2, 2, 1, None),
        (3, 3, 1, "min.insync.replicas=1: an acknowledged record may be on one broker only"),
        (3, 3, 2, None),
        (2, 2, 2, "min.insync.replicas is the number of replicas: the loss of a broker stops the job"),
        (3, 3, 3, "min.insync.replicas is the number of replicas: the loss of a broker stops the job"),
    ],
)
def test_what_all_topics_share_is_one_line(brokers: int, replicas: int, in_sync: int, risk: str | None) -> None:
    names = TopicNames("p-")
    found = [*risks_of(existing(names, replicas, min_insync_replicas=str(in_sync)), names, brokers)]
    assert len(found) == (0 if risk is None else 1)
    if risk is not None:
        assert risk in found[0]
        assert found[0].startswith("p-group-requests, p-group-responses, p-group-journal, ")
