"""Asks the brokers which of a role's rights the present principal lacks."""

from collections.abc import Iterable, Iterator

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from streaming.contract.rights.table import Kind, Operation, Right
from streaming.contract.topics import TopicNames

ACL_OPERATIONS = {
    Operation.READ: AclOperation.READ,
    Operation.WRITE: AclOperation.WRITE,
    Operation.CREATE: AclOperation.CREATE,
    Operation.DESCRIBE: AclOperation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}

IMPLY_DESCRIBE = frozenset({Operation.READ, Operation.WRITE, Operation.DESCRIBE})
"""A topic that brokers do not show at all lacks one of these."""


def missing_rights(
    admin: AdminClient, rights: Iterable[Right], names: TopicNames, limit_seconds: float
) -> Iterator[Right]:
    """Those rights to the coordinator's existing topics that the admin client's principal does not have.

    Whether a topic may be created shows only when it is, and brokers tell nothing about transactional ids.

    Raises:
        KafkaException: no broker answers in time.
    """
    by_topic: dict[str, list[Right]] = {}
    for right in rights:
        if right.kind is Kind.TOPIC and not right.is_of_users and right.operation is not Operation.CREATE:
            by_topic.setdefault(right.named(names), []).append(right)
    if not by_topic:
        return
    described = admin.describe_topics(
        TopicCollection(list(by_topic)), include_authorized_operations=True, request_timeout=limit_seconds
    )
    for topic, needed in by_topic.items():
        try:
            allowed = described[topic].result().authorized_operations
        except KafkaException as failure:
            code = failure.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                yield from (right for right in needed if right.operation in IMPLY_DESCRIBE)
            elif code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            continue
        # Brokers before Kafka 2.3 do not tell.
        if allowed is not None:
            yield from (right for right in needed if ACL_OPERATIONS[right.operation] not in allowed)
