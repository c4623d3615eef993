"""Create the topics at the first start, and check the partitions and settings of existing ones at every start."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.contract.errors import BrokersFailed, CannotRun
from streaming.contract.output.broker_failures import brokers_failed
from streaming.contract.rights.refusals import is_refusal, not_allowed
from streaming.contract.rights.table import Operation
from streaming.contract.topics import TopicNames
from streaming.contract.waits import KAFKA, waiting_for
from streaming.job.topics.inspection import ADMIN_LIMIT_SECONDS, SAFE_REPLICAS, TopicInspection, inspect_topics
from streaming.job.topics.layout import RequiredTopic, TopicLayout, required_topics
from streaming.job.topics.rights import missing_job_rights

DEFAULT_REPLICATION_FACTOR = 3
"""The replicas of a new topic; on a cluster of fewer brokers, one on each."""


def ensure_topics(client_config: Mapping[str, str], names: TopicNames, layout: TopicLayout) -> TopicInspection:
    """Create the missing topics and check the others.

    Args:
        client_config: librdkafka's configuration, with ``bootstrap.servers``.
        names: The names of the topics.
        layout: The user's choices.

    Returns:
        An inspection without missing topics and without problems.

    Raises:
        CannotRun: The cluster does not respond, or does not allow what the job needs, or a topic does not have the
            layout that the job needs. The message has a line for each problem.
    """
    with admin_client(client_config) as admin:
        with waiting_for(KAFKA, ADMIN_LIMIT_SECONDS):
            cluster = admin.list_topics(timeout=ADMIN_LIMIT_SECONDS)
        missing = [topic for topic in required_topics(names, layout) if topic.name not in cluster.topics]
        _create(admin, missing, layout.replication_factor or min(DEFAULT_REPLICATION_FACTOR, len(cluster.brokers)))
        if missing_rights := missing_job_rights(admin, names):
            raise CannotRun("\n".join(missing_rights))
        inspection = _inspection_of_all(admin, names, layout)
    if inspection.problems:
        raise CannotRun("\n".join(inspection.problems))
    return inspection


def ensure_topic(client_config: Mapping[str, str], topic: RequiredTopic) -> None:
    """Create a topic unless it exists, and wait until the brokers list it; its settings are not checked.

    Raises:
        CannotRun: The cluster does not respond, or the topic cannot be created.
    """
    deadline = time.monotonic() + ADMIN_LIMIT_SECONDS
    with admin_client(client_config) as admin:
        cluster = admin.list_topics(timeout=ADMIN_LIMIT_SECONDS)
        if topic.name not in cluster.topics:
            _create(admin, [topic], min(DEFAULT_REPLICATION_FACTOR, len(cluster.brokers)))
        while topic.name not in admin.list_topics(timeout=ADMIN_LIMIT_SECONDS).topics:
            if time.monotonic() > deadline:
                raise CannotRun(f"topic {topic.name} was created, but the brokers do not list it")
            time.sleep(0.05)


@contextmanager
def admin_client(client_config: Mapping[str, str]) -> Iterator[AdminClient]:
    """An admin client; raises :class:`BrokersFailed` with the address and the reason for a failure within the block."""
    reasons: list[KafkaError] = []
    # librdkafka's threads would log the same problem again, even after it has been reported.
    settings: dict[str, Any] = {"log_level": 0, **client_config, "error_cb": reasons.append}
    admin = AdminClient(settings)
    try:
        yield admin
    except KafkaException as error:
        admin.poll(0)
        raise BrokersFailed(brokers_failed(client_config["bootstrap.servers"], error.args[0], reasons)) from error


def _create(admin: AdminClient, topics: list[RequiredTopic], replicas: int) -> None:
    """Create topics, unless they exist although the broker had not listed them."""
    # With two replicas, no write would succeed while one of them is away.
    durable = {"min.insync.replicas": "2"} if replicas >= SAFE_REPLICAS else {}
    new = []
    for topic in topics:
        minimum = {key: str(value) for key, value in topic.minimum.items()}
        config = {**topic.required, **minimum, **topic.initial, **durable}
        new.append(NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=replicas, config=config))
    for name, future in admin.create_topics(new, operation_timeout=ADMIN_LIMIT_SECONDS).items() if new else ():
        try:
            future.result(ADMIN_LIMIT_SECONDS)
        except KafkaException as error:
            if is_refusal(error.args[0]):
                raise CannotRun(not_allowed(Operation.CREATE, name)) from error
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise CannotRun(f"topic {name} cannot be created: {error.args[0].str()}") from error


def _inspection_of_all(admin: AdminClient, names: TopicNames, layout: TopicLayout) -> TopicInspection:
    """Inspect the topics once the brokers list all of them: new topics appear after a delay."""
    deadline = time.monotonic() + ADMIN_LIMIT_SECONDS
    while True:
        inspection = inspect_topics(admin, names, layout)
        if not inspection.missing:
            return inspection
        if time.monotonic() > deadline:
            raise CannotRun(f"topics {', '.join(inspection.missing)} were created, but the brokers do not list them")
        time.sleep(0.05)
