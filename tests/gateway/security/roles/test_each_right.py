"""Each ACL that `group-coordinator acls` prints: without it, what it is for is refused with a line that names it.

With all of them, everything works: whatever was refused is done again when the ACL is given back.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import OF_USERS, ROLES, Kind, Operation
from streaming.contract.topics import TopicNames
from streaming.job.topics.creation import ensure_topics
from tests.gateway.security.roles.cluster import (
    GROUP,
    NEW,
    PREFIX,
    TOPIC,
    TRANSACTIONAL_ID,
    binding,
    printed,
    secured_cluster,
)
from tests.gateway.security.roles.job import SecuredJob
from tests.gateway.security.roles.members import commits_in_transaction, consumes
from tests.gateway.security.roles.uses import ON_NEW_TOPICS, USES, Key, Processes, Use
from tests.gateway.support.certificate import Certificate
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.jvm

DISTINCT_ROLES = [role for role in ROLES if role != "standby"]
ACLS = [(role, acl) for role in DISTINCT_ROLES for acl in printed(role)]

ERRORS_AT_GATEWAY = {
    Kind.TOPIC: "TOPIC_AUTHORIZATION_FAILED",
    Kind.GROUP: "GROUP_AUTHORIZATION_FAILED",
    Kind.TRANSACTIONAL_ID: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
"""What an ordinary Kafka client gets, which prints it in its own words."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Processes]:
    acls = [acl for _, acl in ACLS] + printed("job", prefix=NEW) + printed("recovery", prefix=NEW)
    with secured_cluster(certificate, [*map(binding, acls)]) as cluster, ExitStack() as stack:
        create_topic(cluster.open_address, TOPIC)
        produce_all(cluster.open_address, TOPIC, [b"one", b"two"])
        job = SecuredJob(cluster, tmp_path_factory.mktemp("job"), stack)
        ensure_topics(job.options.librdkafka_config, TopicNames(NEW), job.options.layout)
        own = {f"kafka.{key}": value for key, value in cluster.login("gateway").items()}
        gateway = GatewayProcess(cluster.address, PREFIX, own)
        stack.callback(gateway.kill)
        gateway.start()
        client = cluster.login_at_gateway("client")
        assert consumes(gateway, client) is None
        assert commits_in_transaction(gateway, client) is None
        yield Processes(cluster, job, gateway)


def key_of(role: str, acl: Mapping[str, Any]) -> Key:
    """The right of the table that an ACL stands for."""
    name = OF_USERS if acl["name"] in (TOPIC, GROUP, TRANSACTIONAL_ID) else acl["name"].removeprefix(PREFIX)
    return role, Kind(acl["resource"]), name, Operation(acl["operation"])


def refused_by_gateway(processes: Processes, use: Use) -> str | None:
    """What a client gets once the gateway asks the brokers again: for a few seconds it remembers their answers."""
    answers: list[str | None] = []

    def is_refused() -> bool:
        answers.append(use(processes))
        return answers[-1] is not None

    wait_until(is_refused, "the gateway refuses it", 30.0)
    return answers[-1]


def test_every_right_has_its_use() -> None:
    assert {key_of(role, acl) for role, acl in ACLS} == USES.keys()


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "acl"), ACLS, ids=[f"{role} {acl['operation']} {acl['resource']} {acl['name']}" for role, acl in ACLS]
)
def test_without_a_right_its_use_is_refused_in_a_line_that_names_it(
    processes: Processes, role: str, acl: dict[str, Any]
) -> None:
    key = key_of(role, acl)
    use, cluster = USES[key], processes.cluster
    name = acl["name"].replace(PREFIX, NEW) if key in ON_NEW_TOPICS else acl["name"]
    with cluster.without(binding({**acl, "name": name})):
        said = refused_by_gateway(processes, use) if role == "client" else use(processes)
    assert said is not None, "it works without the right"
    refused = {TOPIC: Kind.TOPIC, GROUP: Kind.GROUP, TRANSACTIONAL_ID: Kind.TRANSACTIONAL_ID}
    shown = name
    if name == OF_USERS:
        shown = next(each for each, kind in refused.items() if kind is key[1])
    expected = ERRORS_AT_GATEWAY[key[1]] if role == "client" else not_allowed(key[3], shown, key[1])
    assert expected in said
    if not processes.job.query.isActive:
        processes.job.start_again()
    elif role == "client":
        wait_until(lambda: use(processes) is None, "the gateway lets the client in again")
    else:
        assert use(processes) is None
