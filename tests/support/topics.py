"""Creates topics under names that no other test uses, and deletes those that need the same names again."""

import uuid
from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec

from tests.support.waiting import LIMIT_SECONDS, wait_until


def unique(name: str) -> str:
    """A name that no other test uses: ``name`` with a random suffix."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def create_topic(
    bootstrap_servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, **client: str
) -> None:
    """Create a topic, and wait until its partitions answer.

    The controller is ready a moment before the brokers' metadata has the topic, and that a moment before its leaders
    accept requests.

    config: the topic's settings. client: settings of the admin client, e.g. its credentials.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **client})
    for created in admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))]).values():
        created.result(LIMIT_SECONDS)

    def is_in_metadata() -> bool:
        metadata = admin.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic]
        return metadata.error is None and len(metadata.partitions) == partitions

    def leaders_answer() -> bool:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = {TopicPartition(topic, partition): latest for partition in range(partitions)}
        return all(end.result(LIMIT_SECONDS) for end in admin.list_offsets(ends).values())

    wait_until(is_in_metadata, f"topic {topic} is in the broker's metadata")
    wait_until(leaders_answer, f"the leaders of topic {topic} answer", ignore=(KafkaException,))


def delete_topics(bootstrap_servers: str, prefix: str) -> None:
    """Delete the topics whose names begin so, and wait until the brokers' metadata has none of them."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def remaining() -> list[str]:
        return [topic for topic in admin.list_topics(timeout=LIMIT_SECONDS).topics if topic.startswith(prefix)]

    for deleted in admin.delete_topics(remaining()).values():
        deleted.result(LIMIT_SECONDS)
    wait_until(lambda: not remaining(), f"no topic of the names {prefix}*")


def set_config(admin: AdminClient, topic: str, key: str, value: str) -> None:
    """Change a setting of a topic, and wait until the broker shows it."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(LIMIT_SECONDS)

    def is_set() -> bool:
        plain = ConfigResource(ConfigResource.Type.TOPIC, topic)
        return bool(admin.describe_configs([plain])[plain].result(LIMIT_SECONDS)[key].value == value)

    wait_until(is_set, f"{key}={value}")
