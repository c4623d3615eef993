"""Group operations are authorized exactly as by a broker with Kafka's own authorizer, field by field."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from kio.index import load_request_schema
from kio.schema.list_groups.v5.request import ListGroupsRequest
from msgspec.structs import replace

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, DescribeGroupsRequest
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.security import permissions
from streaming.gateway.security.authorization import DECISION_TTL_SECONDS, Authorizer
from streaming.gateway.security.permissions import Operation
from streaming.gateway.security.topic_catalog import TopicCatalog
from streaming.gateway.wire.client_request import Caller
from tests.gateway.groups.test_outage import NOT_ASKED, requests
from tests.gateway.groups.topic_ids import ids_of, in_version
from tests.gateway.support.conversations import Conversation
from tests.gateway.support.direct_handlers import DirectHandlers, cluster_of, direct_handlers
from tests.gateway.support.guarded_broker import ANONYMOUS, CreateAcl
from tests.oracle.sides.connection import Connections
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS
from tests.support.wire_types import to_wire

HERE = "127.0.0.1"
CALLER = Caller("client", HERE, ANONYMOUS)
READ, DELETE, DESCRIBE, ALL = AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, AclOperation.ALL


@pytest.fixture(scope="module")
def topic(guarded: EmbeddedBroker) -> str:
    name = unique("topic")
    create_topic(guarded.bootstrap_servers, name, 1)
    return name


def with_both(broker: EmbeddedBroker, work: Callable[[DirectHandlers, Connections], Any]) -> Any:
    """Run a coroutine with the handlers, whose coordinator is not running, and with connections to the broker."""

    async def run() -> Any:
        connections = Connections(broker.bootstrap_servers)
        try:
            async with (
                asyncio.timeout(LIMIT_SECONDS),
                direct_handlers(broker.bootstrap_servers, TopicNames("missing-")) as handlers,
            ):
                return await work(handlers, connections)
        finally:
            connections.close()

    return asyncio.run(run())


def test_a_caller_without_permissions_is_refused_as_by_the_broker_in_every_version(
    guarded: EmbeddedBroker, create_acl: CreateAcl, topic: str
) -> None:
    create_acl("silent", READ, principal="User:another")

    async def compare(handlers: DirectHandlers, connections: Connections) -> list[tuple[Any, Any, Any]]:
        compared = []
        ids = await ids_of(handlers.cluster, topic)
        for key, served in handlers.apis.items():
            if served.name in NOT_ASKED:
                continue
            for version in range(served.min_version, served.max_version + 1):
                body = in_version(requests(topic)[served.name], version, ids)
                payload = to_wire(body, load_request_schema(key, version))
                ours, theirs = await handlers.ask(payload), await connections.ask(payload)
                compared.append((served.name, version, (plain(ours), plain(theirs))))
        return compared

    for api, version, (ours, theirs) in with_both(guarded, compare):
        if api == "OffsetFetch" and version in range(2, 8):
            # A deliberate deviation: these versions repeat the error on each partition.
            ours[0][1].pop("topics")
            theirs[0][1].pop("topics")
        assert "group_authorization_failed" in repr(theirs), (api, version)
        assert ours == theirs, (api, version)


def plain(answer: Any) -> list[tuple[str, Any]]:
    """A response as plain values."""
    story = Conversation(_no_request, 0, "unused")
    story.add_response("answer", answer)
    return story.responses


async def _no_request(_payload: Any, _client_id: str) -> Any:
    raise AssertionError("this conversation sends no request")


ACLS: dict[str, Sequence[tuple[Any, ...]]] = {
    "no ACL": [],
    "another principal": [(READ, {"principal": "User:another"})],
    "read": [(READ, {})],
    "delete": [(DELETE, {})],
    "describe": [(DESCRIBE, {})],
    "describe configurations": [(DESCRIBE, {}), (AclOperation.DESCRIBE_CONFIGS, {})],
    "alter configurations": [(DESCRIBE, {}), (AclOperation.ALTER_CONFIGS, {})],
    "all": [(ALL, {})],
    "every principal": [(READ, {"principal": "User:*"})],
    "another host": [(READ, {"host": "10.0.0.1"})],
    "this host": [(READ, {"host": HERE})],
    "denied": [(ALL, {}), (READ, {"permission": AclPermissionType.DENY})],
    "denied description": [(ALL, {}), (DESCRIBE, {"permission": AclPermissionType.DENY})],
    "prefix": [(DELETE, {"pattern": ResourcePatternType.PREFIXED})],
}


def with_authorizer(
    broker: EmbeddedBroker, work: Callable[[Authorizer, Connections], Any], decision_ttl: float = DECISION_TTL_SECONDS
) -> Any:
    """Run a coroutine with an authorizer that probes the broker, and with connections to the broker."""

    async def run() -> Any:
        connections = Connections(broker.bootstrap_servers)
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                topics = TopicCatalog(cluster_of(broker.bootstrap_servers))
                return await work(Authorizer(topics, connections.ask, decision_ttl), connections)
        finally:
            connections.close()

    return asyncio.run(run())


def test_operations_on_a_group_are_those_that_the_broker_authorizes(
    guarded: EmbeddedBroker, create_acl: CreateAcl
) -> None:
    groups = {what: unique("rules") for what in ACLS}
    for what, acls in ACLS.items():
        for operation, named in acls:
            create_acl(groups[what], operation, **named)

    async def compare(authorizer: Authorizer, connections: Connections) -> dict[str, tuple[Any, Any, int]]:
        compared = {}
        for what, group_id in groups.items():
            payload = to_wire(DescribeGroupsRequest([group_id], True), load_request_schema(15, 5))
            (theirs,) = (await connections.ask(payload)).groups
            compared[what] = (
                await authorizer.allows(CALLER, Operation.DESCRIBE, group_id),
                theirs,
                await authorizer.operations_on_group(CALLER, group_id),
            )
        return compared

    compared = with_authorizer(guarded, compare)

    assert {theirs.error_code.name for _, theirs, _ in compared.values()} == {"none", "group_authorization_failed"}
    for what, (may_describe, theirs, operations) in compared.items():
        assert may_describe == (theirs.error_code.name == "none"), what
        if may_describe:
            assert operations == theirs.authorized_operations, what


@pytest.mark.parametrize("version", [9, 10])
def test_commits_for_unreadable_topics_are_refused_as_by_the_broker(
    guarded: EmbeddedBroker, create_acl: CreateAcl, topic: str, version: int
) -> None:
    hidden, describe_only = unique("hidden"), unique("describe-only")
    for name in (hidden, describe_only):
        create_topic(guarded.bootstrap_servers, name, 1)
    ids = asyncio.run(ids_of(cluster_of(guarded.bootstrap_servers), hidden, describe_only, topic))
    create_acl(hidden, READ, resource=ResourceType.TOPIC, principal="User:another")
    create_acl(describe_only, DESCRIBE, resource=ResourceType.TOPIC)
    partitions = {hidden: [0, 5], describe_only: [0], "no-such-topic": [0], topic: [7]}

    async def compare(handlers: DirectHandlers, connections: Connections) -> list[list[tuple[str, Any]]]:
        stories = [Conversation(asked.ask, version, "committing", ids) for asked in (handlers, connections)]
        for story in stories:
            await story.record("OffsetCommit", story.commit_request(partitions))
        return [story.responses for story in stories]

    ours, theirs = with_both(guarded, compare)
    assert ours == theirs
    for error in ("topic_authorization_failed", "unknown_topic_or_partition"):
        assert error in repr(ours)
    assert ("unknown_topic_id" in repr(ours)) == (version == 10)


def test_a_subscription_to_a_hidden_topic_is_refused_as_by_the_broker(
    guarded: EmbeddedBroker, create_acl: CreateAcl, topic: str
) -> None:
    hidden = unique("hidden")
    create_topic(guarded.bootstrap_servers, hidden, 1)
    create_acl(hidden, READ, resource=ResourceType.TOPIC, principal="User:another")
    joining = ConsumerGroupHeartbeatRequest("subscribing", "m", 0, rebalance_timeout_ms=1_000, topic_partitions=[])

    async def compare(handlers: DirectHandlers, connections: Connections) -> list[Any]:
        answers = []
        for names in ([topic, hidden], [hidden, "no-such-topic"]):
            payload = to_wire(replace(joining, subscribed_topic_names=names), load_request_schema(68, 1))
            answers += [plain(await asked.ask(payload)) for asked in (handlers, connections)]
        return answers

    answers = with_both(guarded, compare)
    assert all(answer == answers[0] for answer in answers)
    assert "topic_authorization_failed" in repr(answers[0])


def test_describable_topics_are_those_that_the_broker_authorizes(
    guarded: EmbeddedBroker, create_acl: CreateAcl, topic: str
) -> None:
    hidden = unique("hidden")
    create_topic(guarded.bootstrap_servers, hidden, 1)
    create_acl(hidden, READ, resource=ResourceType.TOPIC, principal="User:another")

    async def ask(authorizer: Authorizer, _connections: Connections) -> Any:
        return await authorizer.describable_topics(CALLER, [hidden, topic, "no-such-topic"])

    assert with_authorizer(guarded, ask) == {topic, "no-such-topic"}


def test_groups_are_describable_one_by_one_or_through_describe_on_the_cluster(
    guarded: EmbeddedBroker, create_acl: CreateAcl
) -> None:
    hidden, visible = unique("hidden"), unique("visible")
    create_acl(hidden, READ, principal="User:another")

    async def ask(authorizer: Authorizer, _connections: Connections) -> Any:
        return await authorizer.describable(CALLER, [hidden, visible, hidden])

    assert with_authorizer(guarded, ask) == [True, True, True]
    # The broker itself still needs all other operations on the cluster.
    create_acl("kafka-cluster", ALL, resource=ResourceType.BROKER)
    create_acl("kafka-cluster", DESCRIBE, AclPermissionType.DENY, resource=ResourceType.BROKER)
    assert with_authorizer(guarded, ask) == [False, True, False]


def test_a_transactional_id_is_authorized_as_by_the_broker(
    guarded: EmbeddedBroker, create_acl: CreateAcl, topic: str
) -> None:
    create_acl("t", ALL, resource=ResourceType.TRANSACTIONAL_ID, principal="User:another")

    async def ask(handlers: DirectHandlers, connections: Connections) -> list[Any]:
        payload = to_wire(requests(topic)["TxnOffsetCommit"], load_request_schema(28, 4))
        return [plain(await asked.ask(payload)) for asked in (handlers, connections)]

    ours, theirs = with_both(guarded, ask)
    assert ours == theirs
    assert "transactional_id_authorization_failed" in repr(ours)


def test_probing_changes_nothing_on_the_broker(guarded: EmbeddedBroker) -> None:
    group_id = unique("probed")

    async def ask(authorizer: Authorizer, connections: Connections) -> list[str]:
        for operation in (Operation.READ, Operation.DELETE, Operation.DESCRIBE):
            assert await authorizer.allows(CALLER, operation, group_id)
        assert await authorizer.allows_transaction(CALLER, group_id)
        listing = await connections.ask(ListGroupsRequest(states_filter=(), types_filter=()))
        metadata = await authorizer.topics(CALLER, [permissions.PROBE_TOPIC])
        return [group.group_id for group in listing.groups if group.group_id == group_id] + [
            topic for topic, access in metadata.items() if access.partitions
        ]

    assert with_authorizer(guarded, ask) == []


def test_what_one_address_may_do_with_a_topic_is_not_remembered_for_another_address(
    guarded: EmbeddedBroker, create_acl: CreateAcl
) -> None:
    there = "127.0.0.2"
    local = unique("local")
    create_topic(guarded.bootstrap_servers, local, 1)
    create_acl(local, ALL, resource=ResourceType.TOPIC, host=HERE)

    async def ask() -> list[bool]:
        connections = {host: Connections(guarded.bootstrap_servers, host) for host in (HERE, there)}
        asked = [HERE]

        async def forward(payload: Any) -> Any:
            return await connections[asked[-1]].ask(payload)

        authorizer = Authorizer(TopicCatalog(cluster_of(guarded.bootstrap_servers)), forward)
        try:
            readable = []
            for host in (HERE, there, HERE):
                asked.append(host)
                access = await authorizer.topics(Caller("client", host, ANONYMOUS), [local])
                readable.append(access[local].may_read and access[local].partitions > 0)
            return readable
        finally:
            for each in connections.values():
                each.close()

    assert asyncio.run(ask()) == [True, False, True]


def test_a_changed_acl_takes_effect_when_cached_decisions_expire(
    guarded: EmbeddedBroker, create_acl: CreateAcl
) -> None:
    group_id = unique("changed")

    async def ask(authorizer: Authorizer, connections: Connections) -> bool:
        assert await authorizer.allows(CALLER, Operation.READ, group_id)
        await asyncio.to_thread(create_acl, group_id, READ, principal="User:another")
        while await authorizer.allows(CALLER, Operation.READ, group_id):
            await asyncio.sleep(0.05)
        return True

    assert with_authorizer(guarded, ask, decision_ttl=0.5)
