"""The watch of the topics while the query runs, on a real broker and without Spark."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.monitoring.health import HealthLimits, job_health
from streaming.job.monitoring.metrics import Metrics
from streaming.job.monitoring.topics_metrics import serve_topics
from streaming.job.topics import watch as watch_module
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from streaming.job.topics.watch import TopicWatch, watching
from tests.support.topics import set_config
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.fixture
def names() -> TopicNames:
    return TopicNames(f"watch-{uuid.uuid4().hex[:8]}-")


@pytest.fixture
def watched(broker: EmbeddedBroker, names: TopicNames, monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicWatch]:
    for interval in ("PARTITIONS_SECONDS", "SETTINGS_SECONDS", "MISSING_LIMIT_SECONDS"):
        monkeypatch.setattr(watch_module, interval, 0.1)
    config = {"bootstrap.servers": broker.bootstrap_servers}
    found = ensure_topics(config, names, TopicLayout())
    with watching(TopicWatch(config, names, TopicLayout(), found)) as watch:
        yield watch


@pytest.fixture
def admin(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def test_a_change_to_create_time_is_reported_once_and_counted(
    watched: TopicWatch, names: TopicNames, admin: AdminClient
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


def test_a_topic_that_stays_away_is_named(watched: TopicWatch, names: TopicNames, admin: AdminClient) -> None:
    admin.delete_topics([names.directory])[names.directory].result(LIMIT_SECONDS)
    wait_until(lambda: watched.failure, "the deletion is noticed")
    assert str(watched.failure).startswith(f"deleted while the job was running: {names.directory}; ")


def test_a_job_whose_watch_has_ended_is_not_live(watched: TopicWatch) -> None:
    metrics = Metrics()
    serve_topics(metrics, watched)
    health = job_health(metrics, HealthLimits(batch_seconds=LIMIT_SECONDS, backlog=1))

    def failing() -> list[str]:
        return [check.name for check in health.live() if not check.ok]

    assert failing() == []
    watched.stop()
    assert failing() == ["reader of topics"]
    assert metrics.registry.get_sample_value("group_coordinator_reader_alive", {"reader": "topics"}) == 0
