"""Tells a gateway from a broker, for commands that were given the gateway's address."""

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from streaming.contract.topics import TopicNames

TIMEOUT_SECONDS = 5.0


def is_gateway(config: Mapping[str, str | int | float | bool], topics: TopicNames) -> bool:
    """Whether the address in a client's configuration is a gateway's; False if that cannot be known.

    A gateway marks the coordinator's topics that clients may read as internal. A broker has no internal topics but its
    own.
    """
    # The answer comes on the client's thread, which ends with the last reference to the client.
    admin = AdminClient(dict(config))
    asked = admin.describe_topics(TopicCollection([topics.directory]), request_timeout=TIMEOUT_SECONDS)
    try:
        return bool(asked[topics.directory].result().is_internal)
    except KafkaException:
        return False
