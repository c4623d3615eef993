"""At a gateway in front of a real broker, ordinary clients list and describe none of the coordinator's own topics."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i8, i32

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.gateway.security.internal_topics.rules import OFFSETS_TOPIC
from streaming.gateway.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA, api_keys
from tests.gateway.conftest import NewGateway
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import fetch, metadata
from tests.gateway.support.wire_client import WireClient
from tests.oracle.reference_broker import await_coordinators
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

REFUSED, ALLOWED = ErrorCode.topic_authorization_failed, ErrorCode.none


@pytest.fixture
def names(broker: EmbeddedBroker) -> TopicNames:
    """The topics of a coordinator; one does not exist."""
    names = TopicNames(f"{unique('listed')}-")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    wanted = [NewTopic(name, 2, 1) for name in names.all - {names.rebalances}]
    for created in admin.create_topics(wanted).values():
        created.result(LIMIT_SECONDS)
    create_topic(broker.bootstrap_servers, unique("created-last"))
    return names


def asked(gateway: RunningGateway, request: Any) -> Any:
    with WireClient(gateway.port) as client:
        return client.ask(request)


def all_topics() -> Any:
    module: Any = load_payload_module(METADATA, 12, EntityType.request)
    return module.MetadataRequest(topics=None, include_topic_authorized_operations=False)


def test_all_topics_are_those_of_others(
    guarding: RunningGateway, permitting: RunningGateway, names: TopicNames, topic: str
) -> None:
    listed = {each.name: each.is_internal for each in asked(guarding, all_topics()).topics}
    assert listed.keys() & names.all == set()
    assert listed[topic] is False
    shown = {each.name: each.is_internal for each in asked(permitting, all_topics()).topics}
    assert shown.keys() - listed.keys() == names.all - {names.rebalances}
    assert {shown[name] for name in names.all - {names.rebalances}} == {True}
    assert set(AdminClient({"bootstrap.servers": guarding.bootstrap_servers}).list_topics().topics) == listed.keys()


def test_topics_are_described_by_name_and_by_id_as_far_as_clients_may_read_them(
    guarding: RunningGateway, permitting: RunningGateway, names: TopicNames, topic: str
) -> None:
    asked_for = [topic, names.requests, names.journal]
    shown = {each.name: each for each in asked(permitting, metadata(*asked_for)).topics}
    found = {each.name: each for each in asked(guarding, metadata(*asked_for)).topics}
    assert {name: (each.error_code, each.is_internal) for name, each in found.items()} == {
        topic: (ALLOWED, False),
        names.requests: (REFUSED, False),
        names.journal: (ALLOWED, True),
    }
    assert (found[names.requests].topic_id, found[names.requests].partitions) == (None, ())
    assert found[names.journal].partitions == shown[names.journal].partitions

    module: Any = load_payload_module(METADATA, 12, EntityType.request)

    def by_id(topic_id: uuid.UUID) -> Any:
        topics = (module.MetadataRequestTopic(name=None, topic_id=topic_id),)
        (found,) = asked(
            guarding, module.MetadataRequest(topics=topics, include_topic_authorized_operations=False)
        ).topics
        return found

    refused = by_id(shown[names.requests].topic_id)
    assert (refused.name, refused.error_code, refused.partitions) == (None, REFUSED, ())
    assert by_id(shown[names.journal].topic_id).is_internal
    assert by_id(shown[topic].topic_id).name == topic


@pytest.fixture(scope="module")
def creating() -> Iterator[RunningGateway]:
    """A gateway in front of a broker that creates the topics which clients name, as brokers do by default."""
    with EmbeddedBroker(properties={"auto.create.topics.enable": "true"}) as broker:
        gateway = RunningGateway(broker.bootstrap_servers)
        gateway.start()
        try:
            yield gateway
        finally:
            gateway.stop()


def naming(version: int, *names: str) -> Any:
    """A Metadata request that lets the broker create topics."""
    module: Any = load_payload_module(METADATA, version, EntityType.request)
    with_id = {"topic_id": None} if version >= 10 else {}
    flags = {"allow_auto_topic_creation": True} if version >= 4 else {}
    flags |= {"include_topic_authorized_operations": False} if version >= 8 else {}
    flags |= {"include_cluster_authorized_operations": False} if 8 <= version <= 10 else {}
    topics = tuple(module.MetadataRequestTopic(name=name, **with_id) for name in names)
    return module.MetadataRequest(topics=topics, **flags)


def test_a_client_that_names_an_internal_topic_does_not_create_it(
    broker: EmbeddedBroker, creating: RunningGateway
) -> None:
    names = sorted(TopicNames().all)
    direct = AdminClient({"bootstrap.servers": creating.options.bootstrap_servers})
    with WireClient(creating.port) as client:
        for version in (1, 4, 12):
            other = unique("other")
            assert client.ask(naming(version, *names)).brokers
            client.ask(naming(version, other))
            wait_until(lambda: other in direct.list_topics(timeout=LIMIT_SECONDS).topics, f"{other} is created")  # noqa: B023
    assert direct.list_topics(timeout=LIMIT_SECONDS).topics.keys().isdisjoint(names)


def test_partitions_are_described_as_topics_are(
    guarding: RunningGateway, permitting: RunningGateway, names: TopicNames, topic: str
) -> None:
    module: Any = load_payload_module(DESCRIBE_TOPIC_PARTITIONS, 0, EntityType.request)

    def described(gateway: RunningGateway, *topics: str) -> dict[str, tuple[ErrorCode, bool]]:
        entries = tuple(module.TopicRequest(name=each) for each in topics)
        request = module.DescribeTopicPartitionsRequest(
            topics=entries, response_partition_limit=i32(2_000), cursor=None
        )
        return {each.name: (each.error_code, each.is_internal) for each in asked(gateway, request).topics}

    listed = described(guarding)
    assert listed.keys() & names.all == set()
    assert listed[topic] == (ALLOWED, False)
    assert described(permitting)[names.responses] == (ALLOWED, True)
    assert described(guarding, topic, names.responses, names.journal) == {
        topic: (ALLOWED, False),
        names.responses: (REFUSED, False),
        names.journal: (ALLOWED, True),
    }


def test_configurations_and_log_directories_list_those_of_others(
    guarding: RunningGateway, names: TopicNames, topic: str
) -> None:
    (list_resources,) = api_keys(["ListConfigResources"])
    module: Any = load_payload_module(list_resources, 1, EntityType.request)
    resources = asked(guarding, module.ListConfigResourcesRequest(resource_types=(i8(2),))).config_resources
    assert topic in {each.resource_name for each in resources}
    assert names.all.isdisjoint(each.resource_name for each in resources)

    (describe_dirs,) = api_keys(["DescribeLogDirs"])
    module = load_payload_module(describe_dirs, 4, EntityType.request)
    (found,) = asked(guarding, module.DescribeLogDirsRequest(topics=None)).results
    assert topic in {each.name for each in found.topics}
    assert names.all.isdisjoint(each.name for each in found.topics)

    admin = AdminClient({"bootstrap.servers": guarding.bootstrap_servers})
    hidden, shown = (ConfigResource(ResourceType.TOPIC, name) for name in (names.requests, names.journal))
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.describe_configs([hidden])[hidden].result(LIMIT_SECONDS)
    assert "cleanup.policy" in admin.describe_configs([shown])[shown].result(LIMIT_SECONDS)


@pytest.mark.parametrize("hides", [False, True])
def test_the_topic_of_the_brokers_groups_is_shown_unless_an_option_hides_it(
    new_gateway: NewGateway, broker: EmbeddedBroker, names: TopicNames, *, hides: bool
) -> None:
    # The first request about a group at the brokers creates the topic.
    asyncio.run(await_coordinators(broker.bootstrap_servers))
    options = {"topic-prefix": names.prefix, "hide-offsets-topic": str(hides).lower()}
    gateway, permitting = (
        new_gateway(None, {**options, "internal-topic-principals": principals}) for principals in ("", "User:ANONYMOUS")
    )
    shown = {each.name: each for each in asked(permitting, metadata(OFFSETS_TOPIC)).topics}[OFFSETS_TOPIC]
    assert (shown.error_code, shown.is_internal) == (ALLOWED, True)
    (described,) = asked(gateway, metadata(OFFSETS_TOPIC)).topics
    (fetched,) = asked(gateway, fetch(OFFSETS_TOPIC, 1_000)).responses
    listed = {each.name for each in asked(gateway, all_topics()).topics}
    refused = REFUSED if hides else ALLOWED
    assert described.error_code is refused
    assert fetched.partitions[0].error_code is refused
    assert (OFFSETS_TOPIC in listed) is not hides
