"""How requests about the configuration of groups and of other resources are split between broker and coordinator."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from kio.index import load_entity_module, load_response_schema
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.static.constants import EntityType
from kio.static.primitive import i8, i32Timedelta

from coordinator_logic.messages import SetGroupConfigRequest
from streaming.gateway.wire.client_request import Caller, ClientRequest
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.gateway.support.direct_handlers import ANONYMOUS, NODE_ID, as_read_by_client

TOPIC, GROUP = i8(2), i8(32)
SESSION, OF_BROKER = "consumer.session.timeout.ms", "group.consumer.session.timeout.ms"
NO_TIME = i32Timedelta.parse(timedelta(0))
SET = i8(0)


class Broker:
    """Answers requests as a broker whose groups have the session timeout 45000, and that refuses nothing else.

    ``refused`` are the error codes of changes, by the name of the resource. ``asked`` are the requests.
    """

    def __init__(self, **refused: ErrorCode) -> None:
        self.refused = refused
        self.asked: list[Any] = []
        self.listed: tuple[tuple[str, i8], ...] = ()

    async def answer(self, payload: Any) -> Any:
        self.asked.append(payload)
        key, version = payload.__api_key__, payload.__version__
        name = type(payload).__module__.split(".")[2]
        module: Any = load_entity_module(name, version, EntityType.response)
        response: Any = load_response_schema(key, version)
        if isinstance(payload, ListConfigResourcesRequest):
            listed = [module.ConfigResource(resource_name=name, resource_type=kind) for name, kind in self.listed]
            return response(throttle_time=NO_TIME, error_code=ErrorCode.none, config_resources=tuple(listed))
        if isinstance(payload, DescribeConfigsRequest):
            results = tuple(self._described(module, each) for each in payload.resources)
            return response(throttle_time=NO_TIME, results=results)
        answers = [
            module.AlterConfigsResourceResponse(
                error_code=self.refused.get(each.resource_name, ErrorCode.none),
                error_message="the broker's" if each.resource_name in self.refused else None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in payload.resources
        ]
        return response(throttle_time=NO_TIME, responses=tuple(answers))

    def _described(self, module: Any, resource: Any) -> Any:
        synonym = module.DescribeConfigsSynonym(name=OF_BROKER, value="45000", source=i8(5))
        setting = module.DescribeConfigsResourceResult(
            name=SESSION,
            value="45000",
            read_only=False,
            config_source=i8(5),
            is_sensitive=False,
            synonyms=(synonym,),
            documentation=None,
        )
        return module.DescribeConfigsResult(
            error_code=ErrorCode.none,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(setting,) if resource.resource_type == GROUP else (),
        )


def altered(*resources: tuple[i8, str, dict[str, str]], validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    named = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=key, config_operation=SET, value=value) for key, value in configs.items()
            ),
        )
        for kind, name, configs in resources
    ]
    return IncrementalAlterConfigsRequest(resources=tuple(named), validate_only=validate_only)


def described(*groups: str, synonyms: bool = True) -> DescribeConfigsRequest:
    named = [
        DescribeConfigsResource(resource_type=GROUP, resource_name=each, configuration_keys=None) for each in groups
    ]
    return DescribeConfigsRequest(resources=tuple(named), include_synonyms=synonyms)


def answers(broker: Broker, coordinator: LogicCoordinator, payloads: Sequence[Any]) -> list[Any]:
    """The responses to requests, one after the other, as their client reads them."""

    async def ask() -> list[Any]:
        gateway, found = Gateway(coordinator, Cluster(), broker.answer), []
        for payload in payloads:
            key, version = payload.__api_key__, payload.__version__
            caller = Caller("client", "10.0.0.1", ANONYMOUS)
            served = gateway.apis[key]
            assert served.concerns is not None
            assert served.concerns(payload)
            response = await served.handle(ClientRequest(caller, NODE_ID, key, version, payload))
            found.append(as_read_by_client(response, load_response_schema(key, version)))
        return found

    return asyncio.run(ask())


def changes(coordinator: LogicCoordinator) -> list[SetGroupConfigRequest]:
    return cast("list[SetGroupConfigRequest]", coordinator.sent("SetGroupConfig"))


def test_a_mixed_request_is_split_and_its_answer_is_whole() -> None:
    broker, coordinator = Broker(), LogicCoordinator()
    request = altered((TOPIC, "t", {"retention.ms": "7"}), (GROUP, "g", {SESSION: "50000"}), (TOPIC, "u", {}))
    (answer,) = answers(broker, coordinator, [request])
    assert [each.resource_name for each in answer.responses] == ["t", "g", "u"]
    assert {each.error_code for each in answer.responses} == {ErrorCode.none}
    of_topics, of_groups = broker.asked
    assert ([each.resource_name for each in of_topics.resources], of_topics.validate_only) == (["t", "u"], False)
    assert ([each.resource_name for each in of_groups.resources], of_groups.validate_only) == (["g"], True)
    assert [each.configs for each in changes(coordinator)] == [{SESSION: "50000"}]


def test_a_caller_whom_the_broker_refuses_changes_nothing() -> None:
    coordinator = LogicCoordinator()
    broker = Broker(g=ErrorCode.group_authorization_failed)
    (answer,) = answers(broker, coordinator, [altered((GROUP, "g", {SESSION: "50000"}))])
    (refused,) = answer.responses
    assert (refused.error_code, refused.error_message) == (ErrorCode.group_authorization_failed, "the broker's")
    assert changes(coordinator) == []


def test_the_bounds_are_the_coordinators() -> None:
    broker = Broker(g=ErrorCode.invalid_config)
    coordinator = LogicCoordinator(group_consumer_max_session_timeout_ms=90_000)
    allowed, too_long = altered((GROUP, "g", {SESSION: "80000"})), altered((GROUP, "g", {SESSION: "99000"}))
    (accepted,), (refused,) = (each.responses for each in answers(broker, coordinator, [allowed, too_long]))
    assert accepted.error_code is ErrorCode.none
    text = f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"
    assert (refused.error_code, refused.error_message) == (ErrorCode.invalid_config, text)


def test_what_the_coordinator_does_not_know_is_refused_with_the_brokers_text() -> None:
    broker = Broker(g=ErrorCode.invalid_config)
    (answer,) = answers(broker, LogicCoordinator(), [altered((GROUP, "g", {"no.such.setting": "1"}))])
    assert answer.responses[0].error_message == "the broker's"


def test_a_check_changes_nothing() -> None:
    coordinator = LogicCoordinator()
    request = altered((GROUP, "g", {SESSION: "50000"}), validate_only=True)
    (answer,) = answers(Broker(), coordinator, [request])
    assert answer.responses[0].error_code is ErrorCode.none
    assert coordinator.entry("g") is None


def test_a_groups_own_value_is_described_before_the_jobs() -> None:
    coordinator = LogicCoordinator(group_consumer_session_timeout_ms=48_000)
    asked = [described("g"), altered((GROUP, "g", {SESSION: "50000"})), described("g"), described("g", synonyms=False)]
    before, _, after, short = answers(Broker(), coordinator, asked)

    def shown(answer: Any) -> Any:
        (setting,) = answer.results[0].configs
        return setting.value, setting.config_source, [(each.name, each.value, each.source) for each in setting.synonyms]

    of_job = (OF_BROKER, "48000", 4), (OF_BROKER, "45000", 5)
    assert shown(before) == ("48000", 4, list(of_job))
    assert shown(after) == ("50000", 8, [(SESSION, "50000", 8), *of_job])
    assert shown(short) == ("50000", 8, [])


def test_groups_with_a_configuration_are_listed_in_place_of_the_brokers() -> None:
    broker = Broker()
    broker.listed = (("old", GROUP), ("orders", TOPIC), ("group-requests", TOPIC))
    asked = [altered((GROUP, "g", {SESSION: "50000"})), ListConfigResourcesRequest(resource_types=())]
    _, listed = answers(broker, LogicCoordinator(), asked)
    assert [(each.resource_name, each.resource_type) for each in listed.config_resources] == [
        ("g", GROUP),
        ("orders", TOPIC),
    ]


def test_requests_without_a_group_are_the_brokers() -> None:
    apis = Gateway(LogicCoordinator(), Cluster()).apis
    payloads: list[Any] = [altered((TOPIC, "t", {})), described(), ListConfigResourcesRequest(resource_types=(TOPIC,))]
    for payload in payloads:
        concerns = apis[payload.__api_key__].concerns
        assert concerns is not None
        assert not concerns(payload)
