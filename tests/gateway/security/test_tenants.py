"""Tenants that share the topic of requests: each has a key of its own, and may use its own groups only."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from typer.testing import CliRunner

from coordinator_logic.errors import Error
from coordinator_logic.messages import GroupToFetch, OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.cli.app import app
from streaming.client import Consumer, CoordinatorClient, CoordinatorError, PrincipalKey, read_principal_key
from streaming.client.membership.types import GroupProtocol
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.checkpoints.checkpoint import STARTS_FOLDER
from streaming.job.group_batch.starts import Start
from tests.job.monitoring.test_metrics import port_of, scraped
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce_all, reading
from tests.support.parameters.long_tests import mostly_long
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

pytestmark = pytest.mark.jvm

ALICE, BOB, OPERATOR = "User:alice", "User:bob", "User:operator"
VALUES = [b"one", b"two"]

RULES = """
[[acls]]
principal = "User:alice"
group = "alices-"
pattern-type = "prefixed"
operations = ["Read"]

[[acls]]
principal = "User:bob"
group = "bobs"
operations = ["All"]

[[acls]]
principal = "User:operator"
group = "*"
operations = ["Describe"]

# The brokers of these tests authenticate nobody.
[[acls]]
principal = "User:ANONYMOUS"
group = "gateways-"
pattern-type = "prefixed"
operations = ["Read"]
"""


class Tenants:
    """A job with :data:`RULES`, a gateway in front of it, and a key for each tenant."""

    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.folder = folder
        self.topic = unique("tenants")
        create_topic(broker.bootstrap_servers, self.topic, 1)
        produce_all(broker.bootstrap_servers, self.topic, VALUES)
        (folder / "identity.key").write_text("g" * 32)
        lines = []
        for principal in (ALICE, BOB, OPERATOR):
            line = f"{principal} {principal.ljust(32, 'x')}\n"
            self.key_file(principal).write_text(line)
            lines.append(line)
        (folder / "principals.key").write_text("".join(lines))
        (folder / "acls.toml").write_text(RULES)
        identity = {"identity-key-file": str(folder / "identity.key")}
        options = {
            "metrics-port": 0,
            "principal-key-file": str(folder / "principals.key"),
            "group-acl-file": str(folder / "acls.toml"),
        }
        self.coordinator = CoordinatorProcess(broker.bootstrap_servers, folder / "job", identity | options)
        watchful = {"metadata-refresh-ms": "500"}
        self.gateway = GatewayProcess(broker.bootstrap_servers, self.coordinator.topics.prefix, identity | watchful)

    def key_file(self, principal: str) -> Path:
        return self.folder / f"{principal.removeprefix('User:')}.key"

    def key(self, principal: str) -> PrincipalKey:
        return read_principal_key(str(self.key_file(principal)))

    def client(self, key: PrincipalKey | None, principal: str | None = None) -> CoordinatorClient:
        return CoordinatorClient(
            self.coordinator.bootstrap_servers,
            topic_prefix=self.coordinator.topics.prefix,
            principal=principal,
            principal_key=key,
            request_timeout_ms=int(LIMIT_SECONDS * 1000),
        )

    def consumer(self, group: str, **settings: Any) -> Consumer:
        """A consumer of alice's."""
        return Consumer(
            self.coordinator.bootstrap_servers,
            group,
            topic_prefix=self.coordinator.topics.prefix,
            principal_key=self.key(ALICE),
            auto_offset_reset="earliest",
            **settings,
        )

    def commit(self, group: str, key: PrincipalKey | None, principal: str | None = None) -> Error:
        """Commit an offset for a group; returns the error of the request."""
        commit = OffsetCommitRequest(group, [TopicToCommit(self.topic, [PartitionToCommit(0, 1)])])
        with self.client(key, principal) as client:
            try:
                (topic,) = client.offset_commit(commit).topics
            except CoordinatorError as refused:
                return refused.error
        return Error(topic.partitions[0].error_code)

    def refused(self) -> float:
        """How many requests the job has refused for lack of a right."""
        return scraped(port_of(self.coordinator)).get(("group_coordinator_rejects_total", ("authorization",)), 0)


@pytest.fixture(scope="module")
def tenants(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with ExitStack() as stack:
        made = Tenants(broker, tmp_path_factory.mktemp("tenants"))
        for process in (made.coordinator, made.gateway):
            stack.callback(process.kill)
        made.coordinator.start()
        made.gateway.start()
        yield made


def test_each_tenant_may_use_its_own_groups_and_is_refused_those_of_the_other(tenants: Tenants) -> None:
    alice, bob = tenants.key(ALICE), tenants.key(BOB)
    before = tenants.refused()
    assert tenants.commit("alices-orders", alice) is tenants.commit("bobs", bob) is Error.NONE
    assert tenants.commit("bobs", alice) is Error.GROUP_AUTHORIZATION_FAILED
    assert tenants.commit("alices-new", bob) is Error.GROUP_AUTHORIZATION_FAILED
    with tenants.client(alice) as client:
        (deleted,) = client.delete_groups(["bobs"]).results
    assert deleted.error_code == Error.GROUP_AUTHORIZATION_FAILED
    wait_until(lambda: tenants.refused() == before + 3, "the metric counts what was refused")


def test_what_nobody_has_signed_and_what_another_has_signed_is_refused(tenants: Tenants) -> None:
    forged = PrincipalKey(ALICE, tenants.key(BOB).key)
    for key, principal in ((None, ALICE), (None, None), (forged, None), (PrincipalKey(ALICE, b"z" * 32), None)):
        assert tenants.commit("alices-stolen", key, principal) is Error.GROUP_AUTHORIZATION_FAILED
    listed = CliRunner().invoke(app, ["groups", "list", "alices-stolen", *connection(tenants), "--json"])
    assert "alices-stolen" not in listed.stdout


@pytest.mark.parametrize("protocol", mostly_long(["classic", "consumer"], ["consumer"]))
def test_a_consumer_with_a_key_joins_reads_and_commits(tenants: Tenants, protocol: GroupProtocol) -> None:
    group = f"alices-{protocol}"
    with tenants.consumer(group, group_protocol=protocol) as consumer:
        consumer.subscribe([tenants.topic])
        read: list[bytes | None] = []

        def has_read_all() -> bool:
            read.extend(record.value for record in consumer.poll(0.5))
            return read == VALUES

        wait_until(has_read_all, "the records")
        consumer.commit()
    assert offsets(tenants, group) == [2]


def test_a_consumer_without_the_right_is_told_so_by_its_poll(tenants: Tenants) -> None:
    with tenants.consumer("bobs") as stranger:
        stranger.subscribe([tenants.topic])
        with pytest.raises(CoordinatorError) as refused:
            wait_until(lambda: stranger.poll(0.5), "the join is refused")
    assert refused.value.error is Error.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize("protocol", mostly_long(["classic", "consumer"], ["consumer"]))
def test_clients_of_a_gateway_need_no_key_and_have_the_rights_of_their_principal(
    tenants: Tenants, protocol: str
) -> None:
    client = {"bootstrap.servers": tenants.gateway.bootstrap_servers, "auto.offset.reset": "earliest"}
    own = {"group.id": f"gateways-{protocol}", "group.protocol": protocol, "enable.auto.commit": False}
    with closing(KafkaConsumer({**client, **own})) as consumer:
        consumer.subscribe([tenants.topic])
        assert [message.value() for message in consumer.consume(2, LIMIT_SECONDS)] == VALUES
        consumer.commit(asynchronous=False)
    assert offsets(tenants, f"gateways-{protocol}") == [2]
    with closing(KafkaConsumer({**client, "group.id": "alices-orders"})) as stranger:
        with pytest.raises(KafkaException) as refused:
            stranger.committed([TopicPartition(tenants.topic, 0)], LIMIT_SECONDS)
        assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_what_a_gateway_does_in_its_own_name_is_not_refused(tenants: Tenants) -> None:
    topic, group = unique("grows"), "gateways-moves-in"
    create_topic(tenants.coordinator.bootstrap_servers, topic, 1)
    client = {"bootstrap.servers": tenants.gateway.bootstrap_servers, "group.id": group, "group.protocol": "consumer"}
    with closing(KafkaConsumer({"bootstrap.servers": tenants.coordinator.bootstrap_servers, "group.id": group})) as old:
        old.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    with closing(KafkaConsumer(client)) as consumer:
        # It takes over the offsets of the brokers' group, and tells the group of new partitions and of deleted topics.
        assert consumer.committed([TopicPartition(topic, 0)], LIMIT_SECONDS)[0].offset == 7
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 1, "it has joined")
        admin = AdminClient({"bootstrap.servers": tenants.coordinator.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(LIMIT_SECONDS)
        wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2, "the new partition")
        # Its clients have no right to delete offsets.
        admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        wait_until(lambda: offsets(tenants, group) == [], "the offsets are gone")
    with reading(tenants.coordinator.bootstrap_servers, tenants.coordinator.topics.rejects) as rejects:
        assert [record.value["reason"] for record in rejects.to_the_end() if record.key == group.encode()] == []


def test_commands_sign_with_the_key_that_they_are_given(tenants: Tenants) -> None:
    assert tenants.commit("bobs", tenants.key(BOB)) is Error.NONE
    described = ["groups", "describe", "bobs", *connection(tenants)]
    with_key = CliRunner().invoke(app, [*described, "--signing-key", str(tenants.key_file(OPERATOR))])
    assert with_key.exit_code == 0, with_key.output
    without = CliRunner().invoke(app, described)
    assert without.exit_code == 1
    assert "this user may not do this to group bobs" in without.output


def test_other_rules_count_from_the_next_start_on(tenants: Tenants) -> None:
    tenants.coordinator.stop()
    (tenants.folder / "acls.toml").write_text(RULES.replace('"bobs"', '"alices-orders"'))
    tenants.coordinator.start()
    assert tenants.commit("alices-orders", tenants.key(BOB)) is Error.NONE
    assert tenants.commit("bobs", tenants.key(BOB)) is Error.GROUP_AUTHORIZATION_FAILED
    # What a batch runs with again is in the checkpoint, without a key.
    starts = sorted((tenants.coordinator.checkpoint / STARTS_FOLDER).iterdir())
    recorded = [file.read_text() for file in starts if file.name.isdigit()]
    before, after = (msgspec.json.decode(text, type=Start).group_acls for text in recorded[-2:])
    assert before is not None
    assert after is not None
    assert [rule.group for rule in before.rules] == ["alices-", "bobs", "*", "gateways-"]
    assert [rule.group for rule in after.rules] == ["alices-", "alices-orders", "*", "gateways-"]
    assert not any("xxxx" in text or "gggg" in text for text in recorded)


def connection(tenants: Tenants) -> list[str]:
    return ["-b", tenants.coordinator.bootstrap_servers, "--topic-prefix", tenants.coordinator.topics.prefix]


def offsets(tenants: Tenants, group: str) -> list[int]:
    """What a group has committed, as the operator sees it."""
    with tenants.client(tenants.key(OPERATOR)) as client:
        (answer,) = client.offset_fetch([GroupToFetch(group)]).groups
    return [each.committed_offset for topic in answer.topics for each in topic.partitions]
