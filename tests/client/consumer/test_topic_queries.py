"""What consumers learn from a real broker about topics."""

import re

import pytest
from confluent_kafka import Uuid
from confluent_kafka.admin import AdminClient

from coordinator_logic.messages import TOPIC_ID
from streaming.client import ConsumerConfig
from streaming.client.consumer.cluster_topics import ClusterTopics
from streaming.embedded.broker import EmbeddedBroker
from tests.support.garbage import leaked
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until


def cluster_topics(broker: EmbeddedBroker) -> ClusterTopics:
    return ClusterTopics(ConsumerConfig(bootstrap_servers=broker.bootstrap_servers, group_id="g"))


def test_topics_that_cannot_exist_are_as_missing_as_those_that_do_not(broker: EmbeddedBroker) -> None:
    topic = unique("described")
    create_topic(broker.bootstrap_servers, topic, 3)
    names = [topic, unique("missing"), "", "not/valid", "l" * 250, "l" * 600, "nul\0"]
    described = cluster_topics(broker).describe(names, LIMIT_SECONDS, with_racks=True)
    assert {name: metadata.partitions for name, metadata in described.items()} == {topic: 3}


@pytest.mark.jvm
def test_no_query_creates_a_topic_where_brokers_create_what_is_asked_for() -> None:
    with EmbeddedBroker(properties={"auto.create.topics.enable": "true"}) as broker:
        cluster, missing = cluster_topics(broker), unique("missing")
        for _ in range(50):
            assert cluster.describe([missing], LIMIT_SECONDS, with_racks=False) == {}
        assert missing not in cluster.names(LIMIT_SECONDS)


def test_a_hundred_queries_leak_no_ids_of_topics(broker: EmbeddedBroker) -> None:
    topic = unique("described")
    create_topic(broker.bootstrap_servers, topic, 1)
    cluster = cluster_topics(broker)
    with leaked(Uuid) as left:
        for _ in range(100):
            assert topic in cluster.describe([topic, "missing"], LIMIT_SECONDS, with_racks=True)
    assert left() < 10


def test_a_topic_that_is_created_again_has_another_id(broker: EmbeddedBroker) -> None:
    topic = unique("described")
    create_topic(broker.bootstrap_servers, topic, 1)
    cluster = cluster_topics(broker)
    first = cluster.topic_ids([topic, unique("missing"), "not/valid"], LIMIT_SECONDS)
    assert first.keys() == {topic}
    assert re.fullmatch(TOPIC_ID, first[topic])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
    wait_until(lambda: cluster.topic_ids([topic], LIMIT_SECONDS) == {}, "the topic is gone")
    create_topic(broker.bootstrap_servers, topic, 1)
    wait_until(lambda: cluster.topic_ids([topic], LIMIT_SECONDS) != {}, "the topic is back")
    assert cluster.topic_ids([topic], LIMIT_SECONDS) != first
