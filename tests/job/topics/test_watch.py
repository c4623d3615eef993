"""The watch of the topics while the query runs, on a real broker and without Spark."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Uuid
from confluent_kafka.admin import AdminClient, NewPartitions

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.monitoring.health import HealthLimits, job_health
from streaming.job.monitoring.metrics import Metrics
from streaming.job.monitoring.session_gauges import serve_topics
from streaming.job.topics import watch as watch_module
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from streaming.job.topics.watch import CoordinatorTopicsWatch, watching
from tests.support.garbage import leaked
from tests.support.kafka_io import append
from tests.support.topics import create_topic, set_config
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.fixture
def names() -> TopicNames:
    return TopicNames(f"watch-{uuid.uuid4().hex[:8]}-")


@pytest.fixture
def watched(
    broker: EmbeddedBroker, names: TopicNames, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CoordinatorTopicsWatch]:
    for interval in ("PARTITIONS_SECONDS", "SETTINGS_SECONDS", "MISSING_LIMIT_SECONDS"):
        monkeypatch.setattr(watch_module, interval, 0.1)
    config = {"bootstrap.servers": broker.bootstrap_servers}
    found = ensure_topics(config, names, TopicLayout())
    with watching(CoordinatorTopicsWatch(config, names, TopicLayout(), found)) as watch:
        yield watch


@pytest.fixture
def admin(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def new_watch(servers: str, names: TopicNames) -> CoordinatorTopicsWatch:
    """A watch of new topics that checks nothing by itself."""
    config = {"bootstrap.servers": servers}
    return CoordinatorTopicsWatch(config, names, TopicLayout(), ensure_topics(config, names, TopicLayout()))


def delete(admin: AdminClient, topic: str) -> None:
    """Delete a topic, and wait until the broker's metadata does not have it any more."""
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
    wait_until(lambda: topic not in admin.list_topics(timeout=LIMIT_SECONDS).topics, "the topic is gone")


def test_a_hundred_checks_leak_no_ids_of_topics(broker: EmbeddedBroker, names: TopicNames) -> None:
    watch = new_watch(broker.bootstrap_servers, names)
    watch.check()
    with leaked(Uuid) as left:
        for _ in range(100):
            watch.check()
    assert left() < 10


def test_a_check_notices_a_new_partition(broker: EmbeddedBroker, names: TopicNames, admin: AdminClient) -> None:
    watch = new_watch(broker.bootstrap_servers, names)
    before = watch.found.partition_counts(names)
    watch.check()
    assert not watch.has_grown(before)
    grown = admin.create_partitions([NewPartitions(names.responses, before.responses + 1)])
    grown[names.responses].result(LIMIT_SECONDS)

    def has_grown() -> bool:
        watch.check()
        return watch.has_grown(before)

    wait_until(has_grown, "the new partition is noticed")
    assert watch.failure is None


def test_a_check_notices_a_requests_topic_that_was_created_again_between_two_checks(
    broker: EmbeddedBroker, names: TopicNames, admin: AdminClient
) -> None:
    watch = new_watch(broker.bootstrap_servers, names)
    partitions = watch.found.partitions[names.requests]
    append(broker.bootstrap_servers, names.requests, (b"g", b"1"), (b"g", b"2"))
    watch.check()
    assert watch.failure is None
    delete(admin, names.requests)
    create_topic(broker.bootstrap_servers, names.requests, partitions)
    append(broker.bootstrap_servers, names.requests, (b"g", b"3"))
    watch.check()
    assert str(watch.failure).startswith(f"topic {names.requests} was deleted and created again")


@pytest.mark.jvm
def test_no_check_creates_a_deleted_topic_where_brokers_create_what_is_asked_for(names: TopicNames) -> None:
    with EmbeddedBroker(properties={"auto.create.topics.enable": "true"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "allow.auto.create.topics": False})
        watch = new_watch(broker.bootstrap_servers, names)
        watch.check()
        for topic in (names.requests, names.directory):
            delete(admin, topic)
        for _ in range(50):
            watch.check()
        assert admin.list_topics(timeout=LIMIT_SECONDS).topics.keys().isdisjoint({names.requests, names.directory})


def test_a_change_to_create_time_is_reported_once_and_counted(
    watched: CoordinatorTopicsWatch, names: TopicNames, admin: AdminClient
) -> None:
    metrics = Metrics()
    serve_topics(metrics, watched)
    registry = metrics.registry
    assert watched.news() == []
    set_config(admin, names.requests, "message.timestamp.type", "CreateTime")
    wait_until(lambda: registry.get_sample_value("group_coordinator_topic_problems") == 1, "the gauge")
    (line,) = watched.news()
    assert f"topic {names.requests} has message.timestamp.type=CreateTime, it needs LogAppendTime" in line
    assert watched.news() == []
    set_config(admin, names.requests, "message.timestamp.type", "LogAppendTime")
    wait_until(lambda: registry.get_sample_value("group_coordinator_topic_problems") == 0, "the end of the problem")
    assert watched.news() == []
    assert watched.failure is None


def test_a_topic_that_stays_away_is_named(
    watched: CoordinatorTopicsWatch, names: TopicNames, admin: AdminClient
) -> None:
    admin.delete_topics([names.directory])[names.directory].result(LIMIT_SECONDS)
    wait_until(lambda: watched.failure, "the deletion is noticed")
    assert str(watched.failure).startswith(f"deleted while the job was running: {names.directory}; ")


def test_a_job_whose_watch_has_ended_is_not_live(watched: CoordinatorTopicsWatch) -> None:
    metrics = Metrics()
    serve_topics(metrics, watched)
    health = job_health(metrics, HealthLimits(batch_seconds=LIMIT_SECONDS, backlog=1))

    def failing() -> list[str]:
        return [check.name for check in health.live() if not check.ok]

    assert failing() == []
    watched.stop()
    assert failing() == ["reader of topics"]
    assert metrics.registry.get_sample_value("group_coordinator_reader_alive", {"reader": "topics"}) == 0
