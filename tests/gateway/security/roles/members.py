"""What ordinary Kafka clients do at a gateway. Each returns Kafka's error, and None if it works."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from tests.gateway.security.roles.cluster import GROUP, TOPIC, TRANSACTIONAL_ID
from tests.gateway.support.raw_producer import RawProducer
from tests.support.gateway_process import GatewayProcess
from tests.support.waiting import LIMIT_SECONDS


def _consumer(gateway: GatewayProcess, login: Mapping[str, str]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **login,
        }
    )


def consumes(gateway: GatewayProcess, login: Mapping[str, str]) -> str | None:
    """Join the group, consume one record and commit."""
    consumer = _consumer(gateway, login)
    try:
        consumer.subscribe([TOPIC])
        (message,) = consumer.consume(1, LIMIT_SECONDS)
        error = message.error()
        if error is not None:
            return error.name()
        consumer.commit(message=message, asynchronous=False)
    except KafkaException as failure:
        return str(failure.args[0].name())
    finally:
        consumer.close()
    return None


def fetches_offset(gateway: GatewayProcess, login: Mapping[str, str]) -> str | None:
    """Ask for the group's committed offset."""
    consumer = _consumer(gateway, login)
    try:
        consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_SECONDS)
    except KafkaException as failure:
        return str(failure.args[0].name())
    finally:
        consumer.close()
    return None


def begins_transaction(gateway: GatewayProcess, login: Mapping[str, str]) -> str | None:
    """Acquire a transactional id, as every transactional producer does first."""
    settings = {"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": TRANSACTIONAL_ID, **login}
    try:
        Producer(settings).init_transactions(LIMIT_SECONDS)
    except KafkaException as failure:
        return str(failure.args[0].name())
    return None


def commits_in_transaction(gateway: GatewayProcess, login: Mapping[str, str]) -> str | None:
    """Commit an offset in a transaction of version 2, in which the gateway adds the group itself."""
    producer = RawProducer(gateway.port, TRANSACTIONAL_ID, GROUP, TOPIC)
    token = f"\0{login['sasl.username']}\0{login['sasl.password']}".encode()
    try:
        producer.client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        producer.client.ask(SaslAuthenticateRequest(auth_bytes=token))
        error = producer.init()
        if error is ErrorCode.none:
            error = producer.commit_offset(1, version=5)
        if error is ErrorCode.none:
            error = producer.end(True, version=5)
    finally:
        producer.close()
    return None if error is ErrorCode.none else str(error.name).upper()
