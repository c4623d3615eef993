"""Group operations are allowed and refused as by a broker with Kafka's own authorizer, field by field."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kio.index import load_request_schema
from kio.schema.list_groups.v5.request import ListGroupsRequest

from coordinator_logic.messages import DescribeGroupsRequest
from streaming.broker import EmbeddedBroker
from streaming.gateway import authorization, permissions
from streaming.gateway.authorization import Authorizer
from streaming.gateway.permissions import Operation
from streaming.gateway.projection import to_wire
from streaming.gateway.request import Caller
from streaming.gateway.topic_catalog import TopicCatalog
from streaming.topics import TopicNames
from tests.oracle.connection import Connections
from tests.oracle.judge import await_coordinators
from tests.streaming.client_support import create_topic, unique, wait_until
from tests.streaming.gateway.asked_handlers import AskedHandlers, asked_handlers
from tests.streaming.gateway.test_outage import requests
from tests.streaming.gateway.wire_stories import Conversation

LIMIT_SECONDS = 60.0
ME = "User:ANONYMOUS"
HERE = "127.0.0.1"
CALLER = Caller("client", HERE, ME)
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # What has no rule is open: so rules can be made, and everything else goes on.
    "allow.everyone.if.no.acl.found": "true",
}
EVERY_RULE = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]  # it may be: any name
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]  # any principal
    None,  # type: ignore[arg-type]  # any host
    AclOperation.ANY,
    AclPermissionType.ANY,
)
READ, DELETE, DESCRIBE, ALL = AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, AclOperation.ALL


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    """A broker with an authorizer, whose own coordinator answers."""
    with EmbeddedBroker(properties=PROPERTIES) as broker:
        asyncio.run(await_coordinators(broker.bootstrap_servers))
        yield broker


@pytest.fixture(scope="module")
def topic(guarded: EmbeddedBroker) -> str:
    name = unique("topic")
    create_topic(guarded.bootstrap_servers, name, 1)
    return name


Allow = Callable[..., None]


@pytest.fixture
def rule(guarded: EmbeddedBroker) -> Iterator[Allow]:
    """Makes rules for the time of a test, and waits until they count."""
    admin = AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
    made: list[AclBinding] = []

    def make(
        name: str,
        operation: AclOperation,
        permission: AclPermissionType = AclPermissionType.ALLOW,
        *,
        resource: ResourceType = ResourceType.GROUP,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
        principal: str = ME,
        host: str = "*",
    ) -> None:
        binding = AclBinding(resource, name, pattern, principal, host, operation, permission)
        change(admin.create_acls, binding)
        made.append(binding)

    def change(do: Callable[[list[Any]], Mapping[Any, Future[Any]]], which: object) -> None:
        before = told()
        for future in do([which]).values():
            future.result(LIMIT_SECONDS)
        # The controller is done a moment before the broker's authorizer knows of it.
        wait_until(lambda: told() != before, "the broker's authorizer has the change")

    def told() -> set[AclBinding]:
        """The broker's rules; none when a rule forbids to ask."""
        return set(admin.describe_acls(EVERY_RULE).result(LIMIT_SECONDS))

    yield make
    for binding in reversed(made):
        change(admin.delete_acls, _filter(binding))


def _filter(binding: AclBinding) -> Any:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def with_both(broker: EmbeddedBroker, work: Callable[[AskedHandlers, Connections], Any]) -> Any:
    """Run something with the handlers, whose coordinator is not there, and with connections to the broker."""

    async def run() -> Any:
        connections = Connections(broker.bootstrap_servers)
        try:
            async with (
                asyncio.timeout(LIMIT_SECONDS),
                asked_handlers(broker.bootstrap_servers, TopicNames("missing-")) as handlers,
            ):
                return await work(handlers, connections)
        finally:
            connections.close()

    return asyncio.run(run())


def test_who_may_nothing_is_refused_as_by_the_broker_in_every_version(
    guarded: EmbeddedBroker, rule: Allow, topic: str
) -> None:
    rule("silent", READ, principal="User:somebody-else")

    async def compare(handlers: AskedHandlers, connections: Connections) -> list[tuple[Any, Any, Any]]:
        compared = []
        for key, served in handlers.apis.items():
            if served.name == "ListGroups":
                continue
            for version in range(served.min_version, served.max_version + 1):
                payload = to_wire(requests(topic)[served.name], load_request_schema(key, version))
                ours, theirs = await handlers.ask(payload), await connections.ask(payload)
                compared.append((served.name, version, (plain(ours), plain(theirs))))
        return compared

    for api, version, (ours, theirs) in with_both(guarded, compare):
        if api == "OffsetFetch" and version in range(2, 8):
            # Deliberately said of each partition, too.
            ours[0][1].pop("topics")
            theirs[0][1].pop("topics")
        assert "group_authorization_failed" in repr(theirs), (api, version)
        assert ours == theirs, (api, version)


def plain(answer: Any) -> list[tuple[str, Any]]:
    """An answer as it would be written down."""
    story = Conversation(_nobody, 0, "unused")
    story.write("answer", answer)
    return story.said


async def _nobody(_payload: Any, _client_id: str) -> Any:
    raise AssertionError("nobody is asked")


RULES: dict[str, Sequence[tuple[Any, ...]]] = {
    "no rule": [],
    "somebody else's": [(READ, {"principal": "User:somebody-else"})],
    "read": [(READ, {})],
    "delete": [(DELETE, {})],
    "describe": [(DESCRIBE, {})],
    "all": [(ALL, {})],
    "everybody": [(READ, {"principal": "User:*"})],
    "from elsewhere": [(READ, {"host": "10.0.0.1"})],
    "from here": [(READ, {"host": HERE})],
    "denied": [(ALL, {}), (READ, {"permission": AclPermissionType.DENY})],
    "denied description": [(ALL, {}), (DESCRIBE, {"permission": AclPermissionType.DENY})],
    "prefix": [(DELETE, {"pattern": ResourcePatternType.PREFIXED})],
}


def with_authorizer(broker: EmbeddedBroker, work: Callable[[Authorizer, Connections], Any]) -> Any:
    """Run something with an authorizer that asks the broker, and with connections to it."""

    async def run() -> Any:
        connections = Connections(broker.bootstrap_servers)
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                return await work(
                    Authorizer(TopicCatalog(broker.bootstrap_servers, "asks"), connections.ask), connections
                )
        finally:
            connections.close()

    return asyncio.run(run())


def test_what_may_be_done_with_a_group_is_told_as_by_the_broker(guarded: EmbeddedBroker, rule: Allow) -> None:
    groups = {what: unique("rules") for what in RULES}
    for what, rules in RULES.items():
        for operation, named in rules:
            rule(groups[what], operation, **named)

    async def compare(authorizer: Authorizer, connections: Connections) -> dict[str, tuple[Any, Any, int]]:
        told = {}
        for what, group_id in groups.items():
            payload = to_wire(DescribeGroupsRequest([group_id], True), load_request_schema(15, 5))
            (theirs,) = (await connections.ask(payload)).groups
            told[what] = (
                await authorizer.allows(CALLER, Operation.DESCRIBE, group_id),
                theirs,
                await authorizer.operations_on_group(CALLER, group_id),
            )
        return told

    compared = with_authorizer(guarded, compare)

    of_configurations = (1 << 10) | (1 << 11)
    assert {theirs.error_code.name for _, theirs, _ in compared.values()} == {"none", "group_authorization_failed"}
    for what, (may_describe, theirs, operations) in compared.items():
        assert may_describe == (theirs.error_code.name == "none"), what
        if may_describe:
            assert operations == theirs.authorized_operations & ~of_configurations, what


def test_commits_of_topics_that_may_not_be_read_are_refused_as_by_the_broker(
    guarded: EmbeddedBroker, rule: Allow, topic: str
) -> None:
    hidden, seen_only = unique("hidden"), unique("seen")
    for name in (hidden, seen_only):
        create_topic(guarded.bootstrap_servers, name, 1)
    rule(hidden, READ, resource=ResourceType.TOPIC, principal="User:somebody-else")
    rule(seen_only, DESCRIBE, resource=ResourceType.TOPIC)
    partitions = {hidden: [0, 5], seen_only: [0], "no-such-topic": [0], topic: [7]}

    async def compare(handlers: AskedHandlers, connections: Connections) -> list[list[tuple[str, Any]]]:
        told = [Conversation(asked.ask, 9, "committing") for asked in (handlers, connections)]
        for story in told:
            await story.note("OffsetCommit", story.commit_request(partitions))
        return [story.said for story in told]

    ours, theirs = with_both(guarded, compare)
    assert ours == theirs
    for error in ("topic_authorization_failed", "unknown_topic_or_partition"):
        assert error in repr(ours)


def test_topics_are_described_to_whom_the_broker_describes_them(
    guarded: EmbeddedBroker, rule: Allow, topic: str
) -> None:
    hidden = unique("hidden")
    create_topic(guarded.bootstrap_servers, hidden, 1)
    rule(hidden, READ, resource=ResourceType.TOPIC, principal="User:somebody-else")

    async def ask(authorizer: Authorizer, _connections: Connections) -> Any:
        return await authorizer.describable_topics(CALLER, [hidden, topic, "no-such-topic"])

    assert with_authorizer(guarded, ask) == {topic, "no-such-topic"}


def test_a_listing_has_what_may_be_described_or_all(guarded: EmbeddedBroker, rule: Allow) -> None:
    hidden, shown = unique("hidden"), unique("shown")
    rule(hidden, READ, principal="User:somebody-else")

    async def ask(authorizer: Authorizer, _connections: Connections) -> Any:
        return await authorizer.describable(CALLER, [hidden, shown, hidden])

    assert with_authorizer(guarded, ask) == [True, True, True]
    # Everything on the cluster, for the broker's own sake, but not this.
    rule("kafka-cluster", ALL, resource=ResourceType.BROKER)
    rule("kafka-cluster", DESCRIBE, AclPermissionType.DENY, resource=ResourceType.BROKER)
    assert with_authorizer(guarded, ask) == [False, True, False]


def test_transactional_ids_are_asked_for(guarded: EmbeddedBroker, rule: Allow, topic: str) -> None:
    rule("t", ALL, resource=ResourceType.TRANSACTIONAL_ID, principal="User:somebody-else")

    async def ask(handlers: AskedHandlers, connections: Connections) -> list[Any]:
        payload = to_wire(requests(topic)["TxnOffsetCommit"], load_request_schema(28, 4))
        return [plain(await asked.ask(payload)) for asked in (handlers, connections)]

    ours, theirs = with_both(guarded, ask)
    assert ours == theirs
    assert "transactional_id_authorization_failed" in repr(ours)


def test_asking_changes_nothing_at_the_broker(guarded: EmbeddedBroker) -> None:
    group_id = unique("asked-about")

    async def ask(authorizer: Authorizer, connections: Connections) -> list[str]:
        for operation in (Operation.READ, Operation.DELETE, Operation.DESCRIBE):
            assert await authorizer.allows(CALLER, operation, group_id)
        assert await authorizer.allows_transaction(CALLER, group_id, group_id)
        listing = await connections.ask(ListGroupsRequest(states_filter=(), types_filter=()))
        metadata = await authorizer.topics(CALLER, [permissions.NO_TOPIC])
        return [group.group_id for group in listing.groups if group.group_id == group_id] + [
            topic for topic, access in metadata.items() if access.partitions
        ]

    assert with_authorizer(guarded, ask) == []


def test_a_changed_rule_counts_when_what_is_remembered_has_grown_old(
    guarded: EmbeddedBroker, rule: Allow, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = unique("changed")
    monkeypatch.setattr(authorization, "DECISION_SECONDS", 0.5)

    async def ask(authorizer: Authorizer, connections: Connections) -> bool:
        assert await authorizer.allows(CALLER, Operation.READ, group_id)
        await asyncio.to_thread(rule, group_id, READ, principal="User:somebody-else")
        while await authorizer.allows(CALLER, Operation.READ, group_id):
            await asyncio.sleep(0.05)
        return True

    assert with_authorizer(guarded, ask)
