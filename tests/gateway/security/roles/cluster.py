"""A broker with SASL over TLS that denies by default, and the ACLs that `group-coordinator acls` prints for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner, Result

from streaming.cli.app import app
from streaming.contract.rights.check import ACL_OPERATIONS
from streaming.contract.rights.table import ROLES, Kind, Operation
from streaming.contract.topics import TopicNames
from tests.gateway.support.certificate import Certificate
from tests.gateway.support.guarded_broker import change_acls, filter_of
from tests.gateway.support.sasl_broker import PLAIN_MODULE, sasl_broker
from tests.support.waiting import LIMIT_SECONDS, wait_until

TOPIC, GROUP, TRANSACTIONAL_ID = "orders", "billing", "invoices"
PREFIX = "roles-"

NEW = "new-"
"""The prefix of topics that a test deletes, so that the job's start creates them again."""

RESOURCES = {
    Kind.TOPIC: ResourceType.TOPIC,
    Kind.GROUP: ResourceType.GROUP,
    Kind.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The broker itself, and the tests, at the listener without authentication.
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True)
class SecuredCluster:
    """A running broker. ``address`` requires SASL over TLS; at ``open_address``, everything is allowed."""

    open_address: str
    address: str
    certificate: Certificate

    @property
    def names(self) -> TopicNames:
        """The names of the coordinator's topics."""
        return TopicNames(PREFIX)

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client that may do everything."""
        return AdminClient({"bootstrap.servers": self.open_address})

    def login(self, role: str) -> dict[str, str]:
        """librdkafka's properties with which a role connects, without the address."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.certificate.authority,
            "sasl.mechanism": "PLAIN",
            "sasl.username": role,
            "sasl.password": f"{role}-secret",
        }

    def login_at_gateway(self, role: str) -> dict[str, str]:
        """The same at a gateway whose listeners have no certificate."""
        login = {**self.login(role), "security.protocol": "SASL_PLAINTEXT"}
        del login["ssl.ca.location"]
        return login

    def job_options(self, role: str = "job") -> dict[str, object]:
        """The security options of a job, which its clients in Java and in Python take from the same few."""
        jaas = f'{PLAIN_MODULE} required username="{role}" password="{role}-secret";'
        return {
            "topic-prefix": self.names.prefix,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": jaas,
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": self.certificate.authority,
            "librdkafka.ssl.ca.location": self.certificate.authority,
        }

    def delete_topic(self, name: str) -> None:
        """Delete a topic if it exists, and wait until the broker has forgotten it."""
        for deleted in self.admin.delete_topics([name]).values():
            with suppress(KafkaException):
                deleted.result(LIMIT_SECONDS)
        wait_until(lambda: name not in self.admin.list_topics(timeout=LIMIT_SECONDS).topics, f"{name} is gone")

    def command(self, role: str, *arguments: str) -> Result:
        """A command with the rights of a role, in this process."""
        connection = ["-b", self.address, "--topic-prefix", self.names.prefix]
        for key, value in self.login(role).items():
            connection += ["-X", f"{key}={value}"]
        return CliRunner().invoke(app, [*arguments, *connection])

    @contextmanager
    def without(self, acl: AclBinding) -> Iterator[None]:
        """Take an ACL away for the block."""
        change_acls(self.admin, self.admin.delete_acls, [filter_of(acl)])
        try:
            yield
        finally:
            change_acls(self.admin, self.admin.create_acls, [acl])


def printed(*arguments: str, prefix: str = PREFIX) -> list[dict[str, Any]]:
    """What `acls --json` prints for the coordinator with this prefix, and the names of the tests."""
    names = [] if arguments == ("gateway",) else ["--topic", TOPIC, "--group", GROUP]
    names += ["--transactional-id", TRANSACTIONAL_ID] if names else []
    result = CliRunner().invoke(app, ["acls", *arguments, "--json", "--topic-prefix", prefix, *names])
    assert result.exit_code == 0, result.output
    acls: list[dict[str, Any]] = json.loads(result.stdout)
    return acls


def binding(acl: Mapping[str, Any]) -> AclBinding:
    """A printed ACL, to create it."""
    return AclBinding(
        RESOURCES[Kind(acl["resource"])],
        acl["name"],
        ResourcePatternType[acl["pattern"].upper()],
        acl["principal"],
        "*",
        ACL_OPERATIONS[Operation(acl["operation"])],
        AclPermissionType.ALLOW,
    )


@contextmanager
def secured_cluster(certificate: Certificate, acls: Sequence[AclBinding]) -> Iterator[SecuredCluster]:
    """Run a broker with these ACLs and no others; each role is a user."""
    users = {role: f"{role}-secret" for role in ROLES}
    listener = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate.keystore}
    with sasl_broker("SASL_SSL", users, listener, AUTHORIZER) as (broker, address):
        cluster = SecuredCluster(broker.bootstrap_servers, address, certificate)
        if acls:
            change_acls(cluster.admin, cluster.admin.create_acls, acls)
        yield cluster
