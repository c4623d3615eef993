"""A secured cluster as a whole: TLS on both sides of the gateway, SASL through it, and ACLs on groups."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.gateway.support.certificate import Certificate
from tests.gateway.support.sasl_broker import sasl_broker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS, wait_until

pytestmark = pytest.mark.jvm

TOPIC = "secured"
MINE = "mine"
VALUES = [b"one", b"two", b"three"]


def secured_as(user: str, certificate: Certificate) -> dict[str, str]:
    """librdkafka's properties for a user."""
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": certificate.authority,
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
    }


def allow_alice(admin: AdminClient) -> None:
    """Allow alice to use the topic and one group."""
    rules = [
        (ResourceType.TOPIC, TOPIC, AclOperation.READ),
        (ResourceType.TOPIC, TOPIC, AclOperation.WRITE),
        (ResourceType.GROUP, MINE, AclOperation.READ),
    ]
    for resource, name, operation in rules:
        rule = AclBinding(
            resource, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
        )
        for made in admin.create_acls([rule]).values():
            made.result(LIMIT_SECONDS)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[GatewayProcess]:
    """In front of a broker that requires SASL over TLS; the coordinator uses another listener of it."""
    users = {user: f"{user}-secret" for user in ("alice", "gateway")}
    listener = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate.keystore}
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:gateway",
    }
    with sasl_broker("SASL_SSL", users, listener, authorizer) as (broker, address), ExitStack() as stack:
        create_topic(broker.bootstrap_servers, TOPIC, 1)
        allow_alice(AdminClient({"bootstrap.servers": broker.bootstrap_servers}))
        coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("secured"))
        stack.callback(coordinator.kill)
        coordinator.start()
        own = {f"kafka.{key}": value for key, value in secured_as("gateway", certificate).items()}
        listening = {"tls-cert": certificate.chain, "tls-key": certificate.key}
        process = GatewayProcess(address, coordinator.topics.prefix, own | listening)
        stack.callback(process.kill)
        process.start()
        yield process


def test_a_user_may_use_the_groups_that_the_acls_allow(gateway: GatewayProcess, certificate: Certificate) -> None:
    alice = secured_as("alice", certificate)
    produce_all(gateway.bootstrap_servers, TOPIC, VALUES, **alice)

    reading = {"bootstrap.servers": gateway.bootstrap_servers, "auto.offset.reset": "earliest", **alice}
    partition = TopicPartition(TOPIC, 0)
    consumer = Consumer({**reading, "group.id": MINE, "enable.auto.commit": False})
    try:
        consumer.subscribe([TOPIC])
        assert [message.value() for message in consumer.consume(len(VALUES), LIMIT_SECONDS)] == VALUES
        assert consumer.committed([partition], LIMIT_SECONDS)[0].offset == OFFSET_INVALID
        consumer.commit(asynchronous=False)
        assert consumer.committed([partition], LIMIT_SECONDS)[0].offset == len(VALUES)
    finally:
        consumer.close()

    stranger = Consumer({**reading, "group.id": "somebody-elses"})
    try:
        with pytest.raises(KafkaException) as refused:
            stranger.committed([partition], LIMIT_SECONDS)
        assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        errors: list[int] = []

        def is_refused() -> bool:
            message = stranger.poll(0.1)
            error = message.error() if message is not None else None
            errors.extend([error.code()] if error is not None else [])
            return KafkaError.GROUP_AUTHORIZATION_FAILED in errors

        stranger.subscribe([TOPIC])
        wait_until(is_refused, "a join that the ACLs do not allow is refused")
    finally:
        stranger.close()


def test_a_wrong_password_is_refused(gateway: GatewayProcess, certificate: Certificate) -> None:
    errors: list[KafkaError] = []
    wrong: dict[str, Any] = {**secured_as("alice", certificate), "sasl.password": "wrong", "error_cb": errors.append}
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers, **wrong})

    def is_refused() -> bool:
        admin.poll(0.1)
        return any(error.code() == KafkaError._AUTHENTICATION for error in errors)

    wait_until(is_refused, "the broker refuses the password")
