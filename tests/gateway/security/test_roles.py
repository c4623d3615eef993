"""Job, gateway, command line, client and auditor, each with exactly the rights that docs/security.md names."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from streaming.contract.topics import TopicNames
from tests.gateway.support.raw_producer import RawProducer
from tests.gateway.support.sasl_broker import PLAIN_MODULE, sasl_broker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.jvm

DOCUMENT = Path(__file__).parents[3] / "docs" / "security.md"
RIGHTS = re.compile(r"^\| (\w+) \| (topic|group|transactional id) `([^`]+)` \| ([\w, ]+) \|$", re.MULTILINE)
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
}
ROLES = ("job", "gateway", "service", "client", "auditor")
PREFIX = "roles-"
TOPIC, GROUP = "orders", "billing"
TRANSACTIONAL_ID = GROUP


def rights() -> Iterator[AclBinding]:
    """The ACLs of the document's table, with the test's prefix before the coordinator's topics and transactional id."""
    for role, kind, name, operations in RIGHTS.findall(DOCUMENT.read_text()):
        for operation in operations.split(", "):
            yield AclBinding(
                RESOURCES[kind],
                PREFIX + name if kind != "group" and name.startswith("group-") else name,
                ResourcePatternType.LITERAL,
                f"User:{role}",
                "*",
                AclOperation[re.sub(r"(?<!^)(?=[A-Z])", "_", operation).upper()],
                AclPermissionType.ALLOW,
            )


def properties(role: str) -> dict[str, str]:
    """librdkafka's properties for a role."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": role,
        "sasl.password": f"{role}-secret",
    }


def of_job() -> dict[str, object]:
    """The job's options, with the properties of Kafka's Java clients."""
    return {
        "topic-prefix": PREFIX,
        # Its reader of the directory is a client, too.
        "metrics-port": 0,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{PLAIN_MODULE} required username="job" password="job-secret";',
    }


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CoordinatorProcess, GatewayProcess]]:
    """A job and a gateway on a cluster with these ACLs."""
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The broker itself, at the listener without authentication.
        "super.users": "User:ANONYMOUS",
    }
    users = {role: f"{role}-secret" for role in ROLES}
    with sasl_broker("SASL_PLAINTEXT", users, {}, authorizer) as (broker, address), ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_acls(list(rights())).values():
            made.result(LIMIT_SECONDS)
        create_topic(broker.bootstrap_servers, TOPIC, 1)
        produce_all(broker.bootstrap_servers, TOPIC, [b"one", b"two"])
        coordinator = CoordinatorProcess(address, tmp_path_factory.mktemp("roles"), of_job())
        stack.callback(coordinator.kill)
        coordinator.start()
        own = {f"kafka.{key}": value for key, value in properties("gateway").items()}
        gateway = GatewayProcess(address, PREFIX, own)
        stack.callback(gateway.kill)
        gateway.start()
        yield coordinator, gateway


@pytest.fixture
def addresses(running: tuple[CoordinatorProcess, GatewayProcess]) -> tuple[str, str]:
    """The addresses of the brokers and of the gateway."""
    coordinator, gateway = running
    return coordinator.bootstrap_servers, gateway.bootstrap_servers


def command(address: str, *arguments: str) -> object:
    """The JSON output of the command line, with the rights of a service."""
    connection = ["-b", address, "--topic-prefix", PREFIX, "--json"]
    for key, value in properties("service").items():
        connection += ["-X", f"{key}={value}"]
    done = subprocess.run(
        [sys.executable, "-m", "streaming.cli", *arguments, *connection],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def first_journal_entry(address: str) -> str:
    """An entry of the journal, with the rights of an auditor."""
    journal = TopicNames(PREFIX).journal
    auditor = Consumer({"bootstrap.servers": address, "group.id": "unused", **properties("auditor")})
    try:
        partitions = auditor.list_topics(journal, LIMIT_SECONDS).topics[journal].partitions
        auditor.assign([TopicPartition(journal, number, 0) for number in partitions])
        (entry,) = auditor.consume(1, LIMIT_SECONDS)
        assert entry.error() is None
        return (entry.value() or b"").decode()
    finally:
        auditor.close()


def test_the_rights_of_the_table_are_enough_for_every_role(addresses: tuple[str, str]) -> None:
    brokers, gateway = addresses
    client = {"bootstrap.servers": gateway, "auto.offset.reset": "earliest", **properties("client")}
    consumer = Consumer({**client, "group.id": GROUP, "enable.auto.commit": False})
    try:
        consumer.subscribe([TOPIC])
        assert [message.value() for message in consumer.consume(2, LIMIT_SECONDS)] == [b"one", b"two"]
        consumer.commit(asynchronous=False)
        for arguments in (("groups", "list"), ("groups", "describe", GROUP), ("offsets", "list", GROUP)):
            assert GROUP in json.dumps(command(brokers, *arguments))
    finally:
        consumer.close()
    assert "User:client" in first_journal_entry(gateway)


def test_the_rights_of_the_table_are_enough_for_transactions_v2(addresses: tuple[str, str]) -> None:
    _, gateway = addresses
    producer = RawProducer(int(gateway.rpartition(":")[2]), TRANSACTIONAL_ID, GROUP, TOPIC)
    login = properties("client")
    token = f"\0{login['sasl.username']}\0{login['sasl.password']}".encode()
    producer.client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    assert producer.client.ask(SaslAuthenticateRequest(auth_bytes=token)).error_code is ErrorCode.none
    assert producer.init() is ErrorCode.none
    assert producer.commit_offset(1, version=5) is ErrorCode.none
    assert producer.end(True, version=5) is ErrorCode.none
    producer.close()


def test_a_client_may_do_nothing_beyond_the_table(addresses: tuple[str, str]) -> None:
    _, gateway = addresses
    consumer = Consumer({"bootstrap.servers": gateway, "group.id": "another", **properties("client")})
    try:
        with pytest.raises(KafkaException) as refused:
            consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_SECONDS)
        assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        names = TopicNames(PREFIX)
        for name in (names.requests, names.responses, names.transactions, names.journal, names.directory):
            errors = consumer.list_topics(name, LIMIT_SECONDS).topics[name].error
            assert errors.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def test_a_job_that_was_killed_starts_again_with_the_rights_of_the_table(
    running: tuple[CoordinatorProcess, GatewayProcess],
) -> None:
    coordinator, _ = running
    coordinator.kill()
    coordinator.start()


def test_no_process_is_refused_what_it_asks_the_brokers(running: tuple[CoordinatorProcess, GatewayProcess]) -> None:
    for process in running:
        assert [line for line in process.output if "authorization" in line.lower()] == []
