"""The configuration of groups through the gateway: answers are a broker's, and the coordinator has the values."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kio.index import load_entity_module, load_request_schema
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.static.constants import EntityType
from kio.static.primitive import i8

from streaming.client.coordinator_client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.groups.against_broker.test_exact_answers import exact
from tests.gateway.support.in_process import RunningGateway, serving_gateway
from tests.oracle.sides.connection import Connections
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

TOPIC, BROKER, GROUP = i8(2), i8(4), i8(32)
SET, DELETE, APPEND = 0, 1, 2
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
PAUSE_SECONDS = 0.05

Resource = tuple[i8, str, Mapping[str, str | None]]


def describe(*resources: tuple[i8, str], synonyms: bool = True, keys: tuple[str, ...] | None = None) -> Any:
    named = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    )
    return DescribeConfigsRequest(resources=named, include_synonyms=synonyms, include_documentation=True)


def altered(api: str, key: int, version: int, resources: tuple[Resource, ...], **extra: Any) -> Any:
    module: Any = load_entity_module(api, version, EntityType.request)
    operation, is_dry = extra.pop("operation", None), extra.pop("validate_only", False)

    def setting(name: str, value: str | None) -> Any:
        fields = {} if key == 33 else {"config_operation": i8(DELETE if value is None else operation or SET)}
        return module.AlterableConfig(name=name, value=value, **fields)

    named = tuple(
        module.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=tuple(setting(*each) for each in configs.items())
        )
        for kind, name, configs in resources
    )
    return load_request_schema(key, version)(resources=named, validate_only=is_dry)  # type: ignore[call-arg]


def alter(*resources: Resource, **extra: Any) -> Any:
    return altered("incremental_alter_configs", 44, 1, resources, **extra)


def replace_all(*resources: Resource, **extra: Any) -> Any:
    return altered("alter_configs", 33, 2, resources, **extra)


def script(group: str, topic: str) -> list[Any]:
    """Requests whose answers are those of a broker."""
    described = describe((GROUP, group))
    many = [(TOPIC, f"no-such-topic-{number}") for number in range(600)]
    return [
        described,
        alter((GROUP, group, {SESSION: "50000"}), validate_only=True),
        described,
        alter((GROUP, group, {SESSION: "50000", HEARTBEAT: "6000"})),
        described,
        describe((GROUP, group), synonyms=False),
        describe((GROUP, group), keys=(SESSION,)),
        alter((GROUP, group, {"no.such.setting": "1"})),
        alter((GROUP, group, {SESSION: "1"})),
        alter((GROUP, group, {SESSION: "many"})),
        alter((GROUP, group, {SESSION: "50000"}), operation=APPEND),
        alter((GROUP, "", {SESSION: "50000"})),
        alter((GROUP, group, {SESSION: "50000"}), (GROUP, group, {SESSION: "51000"})),
        describe((GROUP, "")),
        alter((TOPIC, topic, {"retention.ms": "777"}), (GROUP, group, {SESSION: "55000"}), (TOPIC, "no-such", {})),
        describe((TOPIC, topic), (GROUP, group), (BROKER, "1"), keys=(SESSION, "retention.ms", "num.io.threads")),
        describe((TOPIC, topic), keys=("retention.ms",)),
        # Requests that are large enough to be decoded in steps.
        describe(*many),
        describe(*many, (GROUP, group)),
        alter((GROUP, group, {SESSION: None})),
        described,
        alter((GROUP, group, {SESSION: "52000"})),
        replace_all((GROUP, group, {HEARTBEAT: "7000"})),
        described,
    ]


@pytest.fixture(scope="module")
def serving(coordinator: CoordinatorProcess) -> Iterator[RunningGateway]:
    """A gateway that listens on sockets, so that its router decides which requests are the broker's."""
    with serving_gateway(coordinator) as running:
        yield running


def test_the_answers_are_a_brokers(
    coordinator: CoordinatorProcess, serving: RunningGateway, broker: EmbeddedBroker
) -> None:
    topic, group = unique("configured"), unique("configured")
    create_topic(broker.bootstrap_servers, topic, 1)
    requests = script(group, topic)

    async def listed(connections: Connections) -> list[str]:
        answer = await connections.ask(ListConfigResourcesRequest(resource_types=(GROUP,)), "client")
        return [each.resource_name for each in answer.config_resources if each.resource_name == group]

    async def play() -> None:
        gateway, reference = Connections(serving.bootstrap_servers), Connections(broker.bootstrap_servers)
        try:
            for asked in requests:
                ours, theirs = exact(await gateway.ask(asked, "client")), exact(await reference.ask(asked, "client"))
                # A broker learns of a change from its controller, a moment after the answer.
                async with asyncio.timeout(LIMIT_SECONDS):
                    while isinstance(asked, DescribeConfigsRequest) and sorted_results(ours) != sorted_results(theirs):
                        await asyncio.sleep(PAUSE_SECONDS)
                        theirs = exact(await reference.ask(asked, "client"))
                assert (asked, sorted_results(ours)) == (asked, sorted_results(theirs))
            assert await listed(gateway) == await listed(reference) == [group]
        finally:
            gateway.close()
            reference.close()

    asyncio.run(play())
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
        assert client.set_group_config(group, {}) == {HEARTBEAT: "7000"}


def sorted_results(answer: Any) -> Any:
    """An answer whose resources are in an order of their own: a broker's is that of its parts."""
    return {
        name: sorted(value, key=repr) if name in ("results", "responses") else value for name, value in answer.items()
    }
