"""Job, gateway, commands and client, each with exactly the rights that `group-coordinator acls` prints."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import ROLES, Operation
from tests.gateway.security.roles.cluster import GROUP, PREFIX, TOPIC, SecuredCluster, binding, printed, secured_cluster
from tests.gateway.security.roles.members import commits_in_transaction
from tests.gateway.support.certificate import Certificate
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.jvm

Running = tuple[SecuredCluster, CoordinatorProcess, GatewayProcess]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Running]:
    """A job and a gateway on a cluster with these ACLs."""
    acls = [binding(acl) for role in ROLES if role != "standby" for acl in printed(role)]
    with secured_cluster(certificate, acls) as cluster, ExitStack() as stack:
        create_topic(cluster.open_address, TOPIC, 1)
        produce_all(cluster.open_address, TOPIC, [b"one", b"two"])
        # Its reader of the directory is a client, too.
        options = {**cluster.job_options(), "metrics-port": 0}
        coordinator = CoordinatorProcess(cluster.address, tmp_path_factory.mktemp("roles"), options)
        stack.callback(coordinator.kill)
        coordinator.start()
        gateway = new_gateway(cluster)
        stack.callback(gateway.kill)
        gateway.start()
        yield cluster, coordinator, gateway


def new_gateway(cluster: SecuredCluster) -> GatewayProcess:
    own = {f"kafka.{key}": value for key, value in cluster.login("gateway").items()}
    return GatewayProcess(cluster.address, PREFIX, own)


def test_the_rights_are_enough_for_every_role(running: Running) -> None:
    cluster, _, gateway = running
    login = cluster.login_at_gateway("client")
    client = {"bootstrap.servers": gateway.bootstrap_servers, "auto.offset.reset": "earliest", **login}
    consumer = Consumer({**client, "group.id": GROUP, "enable.auto.commit": False})
    try:
        consumer.subscribe([TOPIC])
        assert [message.value() for message in consumer.consume(2, LIMIT_SECONDS)] == [b"one", b"two"]
        consumer.commit(asynchronous=False)
        for arguments in (("groups", "list"), ("groups", "describe", GROUP), ("offsets", "list", GROUP)):
            done = cluster.command("operator", *arguments, "--json")
            assert done.exit_code == 0, done.output
            assert GROUP in json.dumps(json.loads(done.stdout))
    finally:
        consumer.close()
    assert "User:client" in cluster.command("operator", "offsets", "history", GROUP, "--json").stdout
    assert cluster.command("reader", "events").exit_code == 0
    reset = cluster.command("operator", "offsets", "reset", GROUP, "--topic", TOPIC, "--to-earliest", "--execute")
    assert reset.exit_code == 0, reset.output


def test_the_rights_are_enough_for_transactions_v2(running: Running) -> None:
    cluster, _, gateway = running
    assert commits_in_transaction(gateway, cluster.login_at_gateway("client")) is None


def test_a_client_may_do_nothing_beyond_its_rights(running: Running) -> None:
    cluster, _, gateway = running
    login = cluster.login_at_gateway("client")
    consumer = Consumer({"bootstrap.servers": gateway.bootstrap_servers, "group.id": "another", **login})
    try:
        with pytest.raises(KafkaException) as refused:
            consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_SECONDS)
        assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        names = cluster.names
        for name in (names.requests, names.responses, names.transactions, names.journal, names.directory):
            error = consumer.list_topics(name, LIMIT_SECONDS).topics[name].error
            assert error is not None
            assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def test_no_process_is_refused_what_it_asks_the_brokers(running: Running) -> None:
    _, coordinator, gateway = running
    for process in (coordinator, gateway):
        assert [line for line in process.output if "authorization" in line.lower() or "not allow" in line] == []


def test_a_gateway_says_at_its_start_which_rights_it_lacks(running: Running) -> None:
    cluster, _, _ = running
    journal = next(binding(acl) for acl in printed("gateway") if acl["name"] == cluster.names.journal)
    with cluster.without(journal), ExitStack() as stack:
        gateway = new_gateway(cluster)
        stack.callback(gateway.kill)
        gateway.start()
        expected = f"do not allow Read on topic {cluster.names.journal}"
        gateway.await_line("the right that it lacks", lambda line: expected in line)


def test_a_job_says_which_rights_it_lacks_and_with_them_it_starts_again_after_a_kill(running: Running) -> None:
    cluster, coordinator, _ = running
    lacks = {cluster.names.responses: "Write", cluster.names.journal: "Read"}
    coordinator.kill()
    with ExitStack() as stack:
        for acl in printed("job"):
            if lacks.get(acl["name"]) == acl["operation"]:
                stack.enter_context(cluster.without(binding(acl)))
        coordinator.launch()
        assert coordinator.wait() == 1
        settings = [each for key, value in cluster.job_options().items() for each in ("--set", f"{key}={value}")]
        examined = CliRunner().invoke(app, ["doctor", "--json", "-b", cluster.address, *settings])
        found = {finding["detail"] for finding in json.loads(examined.stdout) if finding["check"] == "rights"}
    for name, operation in lacks.items():
        line = not_allowed(Operation(operation), name)
        assert line in found
        assert any(line in each for each in coordinator.output)
    assert "Traceback" not in coordinator.tail()
    coordinator.start()
