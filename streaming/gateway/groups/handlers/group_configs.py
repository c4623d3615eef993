"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, as far as they concern groups.

The coordinator keeps the configuration of a group. The brokers authorize each request about it, check its form, and
describe every setting; their own values for groups have no effect. Resources of other types are the brokers'.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from kio.index import load_entity_module, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.static.constants import EntityType
from kio.static.primitive import i8
from kio.static.protocol import Entity

from coordinator_logic.apis import SET_GROUP_CONFIG
from coordinator_logic.errors import Error
from coordinator_logic.messages import SetGroupConfigRequest, SetGroupConfigResponse
from coordinator_logic.sizes import utf8_length
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.security.internal_topics.refusals import TOPIC_RESOURCE, refuse_topics
from streaming.gateway.wire.answer_room import NoAnswerRoom, await_answer_room
from streaming.gateway.wire.api_keys import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    api_name,
)
from streaming.gateway.wire.client_request import Caller, ClientRequest, ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS
from streaming.gateway.wire.forwarding import Forward, forward_upstream
from streaming.gateway.wire.steps import run_steps

GROUP_RESOURCE = i8(32)
"""Kafka's number of the resource type of groups."""

SET, DELETE = 0, 1
"""Operations of IncrementalAlterConfigs."""

STATIC_BROKER_CONFIG, DEFAULT_CONFIG, GROUP_CONFIG = i8(4), i8(5), i8(8)
"""Sources of a value."""

RESOURCES_PER_REQUEST = 20
"""How many resources the broker is asked for at once: a larger response would hold the event loop while it is decoded.
Each has some 30 settings."""

RESOURCE_BYTES = {DESCRIBE_CONFIGS: 8 * 1024, ALTER_CONFIGS: 512, INCREMENTAL_ALTER_CONFIGS: 512}
"""What a resource has in an answer, until that is known."""
LISTED_BYTES = 64 * 1024
"""What the broker lists in an answer, until that is known."""
ENTRY_BYTES = 16
"""A resource, a setting or a synonym in an answer, without its texts."""
TOO_MANY = "The answer has no room for more: ask for fewer resources at a time."

JUDGED_BY_COORDINATOR = frozenset({ErrorCode.none, ErrorCode.invalid_config})
"""The broker's answers to a change after which the coordinator is asked."""

Key = tuple[int, str]


class _Split(NamedTuple):
    """The resources of a request that are groups, and the others."""

    groups: tuple[Any, ...]
    others: tuple[Any, ...]

    @classmethod
    def of(cls, resources: Sequence[Any]) -> "_Split":
        return cls(
            tuple(each for each in resources if each.resource_type == GROUP_RESOURCE),
            tuple(each for each in resources if each.resource_type != GROUP_RESOURCE),
        )


class GroupConfigHandlers:
    """The handlers."""

    def __init__(self, backend: GroupBackend, forward: Forward = forward_upstream) -> None:
        self._backend = backend
        self._forward = forward

    @property
    def apis(self) -> dict[int, ServedApi]:
        """The served APIs by key; requests without a group are the broker's."""
        handlers = {
            DESCRIBE_CONFIGS: self.describe_configs,
            ALTER_CONFIGS: self.alter_configs,
            INCREMENTAL_ALTER_CONFIGS: self.alter_configs,
            LIST_CONFIG_RESOURCES: self.list_config_resources,
        }
        return {
            key: ServedApi(api_name(key), key, *KNOWN_VERSIONS[key], handle, concerns=_concerns_groups)
            for key, handle in handlers.items()
        }

    async def describe_configs(self, request: ClientRequest) -> Entity:
        """Describe resources; the caller needs DESCRIBE_CONFIGS on each of them."""
        payload: Any = request.payload
        groups, others = _Split.of(payload.resources)
        response = await self._in_parts(payload, others, request.caller)
        # The synonyms tell what holds where a group has no value of its own.
        described = await self._in_parts(replace(payload, include_synonyms=True), groups, request.caller)
        names = [each.resource_name for each in described.results if each.error_code is ErrorCode.none]
        current = await self._backend.ask_each(
            SET_GROUP_CONFIG, request.caller, names, lambda name: self._ask(request, SetGroupConfigRequest(name))
        )
        results = [
            _described(each, current.get(each.resource_name, _NO_ANSWER), payload.include_synonyms)
            if each.error_code is ErrorCode.none
            else each
            for each in described.results
        ]
        return replace(response, results=(*response.results, *results))  # type: ignore[no-any-return]

    async def alter_configs(self, request: ClientRequest) -> Entity:
        """Change the configuration of resources; the caller needs ALTER_CONFIGS on each of them."""
        payload: Any = request.payload
        groups, others = _Split.of(payload.resources)
        response = await self._in_parts(payload, others, request.caller)
        checked = await self._in_parts(replace(payload, validate_only=True), groups, request.caller)
        wanted = {each.resource_name: each for each in groups}
        # A resource that is named twice has two answers.
        found: defaultdict[Key, list[Any]] = defaultdict(list)
        for answer in (*response.responses, *checked.responses):
            if answer.resource_type == GROUP_RESOURCE and answer.error_code in JUDGED_BY_COORDINATOR:
                answer = await self._altered(request, wanted[answer.resource_name], answer)  # noqa: PLW2901
            found[answer.resource_type, answer.resource_name].append(answer)
        in_order = dict.fromkeys((each.resource_type, each.resource_name) for each in payload.resources)
        return replace(response, responses=tuple(answer for key in in_order for answer in found[key]))  # type: ignore[no-any-return]

    async def list_config_resources(self, request: ClientRequest) -> Entity:
        """List the resources that have a configuration; the caller needs DESCRIBE_CONFIGS on the cluster."""
        directory = self._backend.directory
        of_groups = sum(ENTRY_BYTES + utf8_length(each.group_id) for each in directory.entries() if each.configs)
        settle = await await_answer_room(of_groups + LISTED_BYTES)
        response: Any = await self._forward(request.payload)
        if response.error_code is not ErrorCode.none:
            return response  # type: ignore[no-any-return]
        sizes = await self._backend.lists.make_each(request.caller, response.config_resources, _size)
        settle(of_groups + sum(sizes))
        if not (directory.is_complete and await self._backend.is_directory_current()):
            return replace(response, error_code=ErrorCode.coordinator_load_in_progress, config_resources=())  # type: ignore[no-any-return]
        module: Any = load_entity_module(api_key_map[LIST_CONFIG_RESOURCES], request.version, EntityType.response)
        groups = [
            module.ConfigResource(resource_name=entry.group_id, resource_type=GROUP_RESOURCE)
            for entry in directory.entries()
            if entry.configs
        ]
        rules = self._backend.internal_topics
        hidden = frozenset() if rules.may_use(request.caller.principal) else rules.all
        others = [
            each
            for each in response.config_resources
            if each.resource_type != GROUP_RESOURCE
            and not (each.resource_type == TOPIC_RESOURCE and each.resource_name in hidden)
        ]
        return replace(response, config_resources=(*groups, *others))  # type: ignore[no-any-return]

    async def _in_parts(self, payload: Any, resources: Sequence[Any], caller: Caller) -> Any:
        """The broker's response for some of a request's resources, of which it is asked for a few at a time.

        Resources for which the answer has no room are refused: the client asks for them again.
        """
        key, version = payload.__api_key__, payload.__version__
        answered = "results" if key == DESCRIBE_CONFIGS else "responses"
        throttle_time: Any = timedelta(0)
        entries: list[Any] = []
        for first in range(0, max(1, len(resources)), RESOURCES_PER_REQUEST):
            part = tuple(resources[first : first + RESOURCES_PER_REQUEST])
            try:
                settle = await await_answer_room(RESOURCE_BYTES[key] * len(part))
            except NoAnswerRoom:
                refuse = partial(_refused, api_key=key, version=version)
                entries += await self._backend.lists.make_each(caller, resources[first:], refuse)
                break
            response: Any = await self._guarded(replace(payload, resources=part), caller.principal)
            throttle_time = response.throttle_time
            settle(sum(map(_size, getattr(response, answered))))
            entries += getattr(response, answered)
        response_type: Any = load_response_schema(key, version)
        return response_type(throttle_time=throttle_time, **{answered: tuple(entries)})

    async def _guarded(self, payload: Any, principal: str) -> Any:
        """The broker's response, with a refusal for each internal topic, as without a group in the request."""
        rules, refusal = self._backend.internal_topics, None
        if not rules.may_use(principal):
            guarded = rules.guarded(payload.__api_key__)
            refusal = run_steps(refuse_topics(payload, lambda topic: topic in guarded))
        if refusal is None:
            return await self._forward(payload)
        return refusal.answer if refusal.request is None else refusal.merge(await self._forward(refusal.request))

    async def _altered(self, request: ClientRequest, resource: Any, checked: Any) -> Any:
        """Let the coordinator change a group, or check the change; ``checked`` is the broker's answer.

        The coordinator has bounds of its own: it judges the values of the settings that it has.
        """
        operations = {getattr(each, "config_operation", SET) for each in resource.configs}
        if not operations <= {SET, DELETE}:
            return checked
        changes = {
            each.name: None if getattr(each, "config_operation", SET) == DELETE else each.value
            for each in resource.configs
        }
        name = resource.resource_name
        if request.api_key == ALTER_CONFIGS:
            # It names all values that the resource is to have.
            before = await self._ask(request, SetGroupConfigRequest(name))
            changes = dict.fromkeys(before.configs) | changes
        body = SetGroupConfigRequest(name, changes, validate_only=request.payload.validate_only)
        answer = await self._ask(request, body)
        is_refused_by_both = {checked.error_code, answer.error_code} == {ErrorCode.invalid_config}
        if is_refused_by_both and not changes.keys() <= answer.defaults.keys():
            return checked
        return replace(checked, error_code=ErrorCode(answer.error_code), error_message=answer.error_message)

    async def _ask(self, request: ClientRequest, body: SetGroupConfigRequest) -> SetGroupConfigResponse:
        api = SET_GROUP_CONFIG
        return await self._backend.request(api, api.max_version, body.group_id, body, request.caller)


_NO_ANSWER = SetGroupConfigResponse(Error.COORDINATOR_LOAD_IN_PROGRESS)


def _concerns_groups(payload: Any) -> bool:
    """Whether a request names a group, or lists resources of a type that may be groups."""
    if payload.__api_key__ == LIST_CONFIG_RESOURCES:
        types = getattr(payload, "resource_types", None)
        return types is not None and (not types or GROUP_RESOURCE in types)
    return any(each.resource_type == GROUP_RESOURCE for each in payload.resources)


def _refused(resource: Any, api_key: int, version: int) -> Any:
    module: Any = load_entity_module(api_key_map[api_key], version, EntityType.response)
    is_description = api_key == DESCRIBE_CONFIGS
    entry_type = module.DescribeConfigsResult if is_description else module.AlterConfigsResourceResponse
    return entry_type(
        error_code=ErrorCode.coordinator_load_in_progress,
        error_message=TOO_MANY,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        **({"configs": ()} if is_description else {}),
    )


def _size(entry: Any) -> int:
    """About how many bytes a resource, a setting or a synonym has, with all that is in it."""
    texts = [getattr(entry, name, None) or "" for name in ("name", "value", "documentation")]
    texts += [getattr(entry, name, None) or "" for name in ("resource_name", "error_message")]
    inner = (*getattr(entry, "configs", ()), *getattr(entry, "synonyms", ()))
    return ENTRY_BYTES + sum(map(utf8_length, texts)) + sum(map(_size, inner))


def _described(result: Any, current: SetGroupConfigResponse, include_synonyms: bool) -> Any:
    """A group as the broker describes it, with the coordinator's values."""
    if current.error_code != Error.NONE:
        return replace(result, error_code=ErrorCode(current.error_code), configs=())
    return replace(result, configs=tuple(_setting(each, current, include_synonyms) for each in result.configs))


def _setting(entry: Any, current: SetGroupConfigResponse, include_synonyms: bool) -> Any:
    if entry.name not in current.defaults:
        return entry if include_synonyms else replace(entry, synonyms=())
    default, own = current.defaults[entry.name], current.configs.get(entry.name)
    synonyms = [each for each in entry.synonyms if each.source != GROUP_CONFIG]
    if synonyms and synonyms[0].value != default:
        # The job's option has another value than the broker's.
        of_job = replace(synonyms[0], value=default, source=STATIC_BROKER_CONFIG)
        synonyms = [of_job, *(each for each in synonyms if each.source == DEFAULT_CONFIG)]
    source = synonyms[0].source if synonyms else DEFAULT_CONFIG
    if own is not None:
        synonym_type = type(entry.synonyms[0])
        synonyms = [synonym_type(name=entry.name, value=own, source=GROUP_CONFIG), *synonyms]
        source = GROUP_CONFIG
    shown = tuple(synonyms) if include_synonyms else ()
    return replace(entry, value=default if own is None else own, config_source=source, synonyms=shown)
