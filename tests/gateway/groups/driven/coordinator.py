"""The gateway's handlers in front of the coordinator's own logic: no topics, no job, no broker, no real time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import msgspec
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from coordinator_logic.messages import Message, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry
from coordinator_logic.records.definitions import directory_entry
from streaming.client.errors import ResponseTimedOut
from streaming.contract.topics import TopicNames
from streaming.gateway.groups.backend import GroupBackend, GroupType
from streaming.gateway.groups.channel import RequestEvent
from streaming.gateway.groups.group_types import GROUP_TYPES
from streaming.gateway.groups.handlers.group_configs import GroupConfigHandlers
from streaming.gateway.groups.large_reads import LargeReads
from streaming.gateway.groups.list_requests import ListRequests
from streaming.gateway.groups.look_schedule import LookSchedule
from streaming.gateway.groups.registry import group_apis, timeout_policies
from streaming.gateway.groups.subscriptions.offset_cleanup import LISTING_SECONDS, OffsetCleanup
from streaming.gateway.groups.subscriptions.topic_notifier import TopicNotifier
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicies
from streaming.gateway.security.authorization import Authorizer
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.security.topic_catalog import ClusterTopics, FoundTopic, TopicCatalog
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.loop_share import LoopShare
from streaming.gateway.wire.values import text_of_topic_id
from tests.gateway.support.direct_handlers import ANONYMOUS, NODE_ID, as_read_by_client, decoded, every_group
from tests.logic.driver import Driven
from tests.support.wire_types import to_wire

__all__ = ["GATEWAY", "Cluster", "Gateway", "LogicCoordinator", "topic_id"]

GATEWAY = Caller("gateway", "gateway", ANONYMOUS)


def topic_id(number: int) -> str:
    """The id of a topic in these tests."""
    return text_of_topic_id(UUID(int=number + 1))


class Cluster:
    """Topics with their partition counts and numbers of ids by name, which the test changes.

    ``hidden``: topics that the gateway may not describe.
    """

    def __init__(self, **partitions: int) -> None:
        self.topics_now: dict[str, tuple[int, int]] = {}
        self.hidden: set[str] = set()
        self.listings = 0
        self._next_id = 0
        for name, count in partitions.items():
            self.create(name, count)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic, or create it again with another id."""
        self.topics_now[name] = (self._next_id, partitions)
        self._next_id += 1

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions to a topic."""
        self.topics_now[name] = (self.topics_now[name][0], partitions)

    def id_of(self, name: str) -> str:
        """The id of a topic."""
        return topic_id(self.topics_now[name][0])

    async def topics(self, names: Sequence[str], /) -> list[FoundTopic]:
        error = ErrorCode.topic_authorization_failed
        return [FoundTopic(name, "", 0, error) if name in self.hidden else self._found(name) for name in names]

    async def topics_by_id(self, topic_ids: Sequence[str], /) -> list[FoundTopic]:
        names = {self.id_of(name): name for name in self.topics_now}
        missing = ErrorCode.unknown_topic_id
        return [self._found(names[each]) if each in names else FoundTopic("", each, 0, missing) for each in topic_ids]

    async def all_topics(self) -> list[FoundTopic]:
        self.listings += 1
        return [self._found(name) for name in self.topics_now]

    def _found(self, name: str) -> FoundTopic:
        if name not in self.topics_now:
            return FoundTopic(name, "", 0, ErrorCode.unknown_topic_or_partition)
        number, partitions = self.topics_now[name]
        return FoundTopic(name, topic_id(number), partitions)


class LogicCoordinator:
    """Steps a group for each event, and answers with its responses: the channel and the directory of a gateway.

    ``events``: the API and the body of each event. While ``is_silent``, events are in the log and have no response;
    :meth:`catch_up` gives the responses. While ``is_away``, no event reaches the log.
    """

    def __init__(self, **config: Any) -> None:
        self.groups: dict[str, Driven] = {}
        self.events: list[tuple[str, Any]] = []
        self.is_silent = False
        self.is_away = False
        self._config = {"group_consumer_assignment_interval_ms": 0, "group_initial_rebalance_delay_ms": 0, **config}
        self._unanswered: list[Callable[[], None]] = []

    def group(self, group_id: str) -> Driven:
        """A group, whose time the test lets pass."""
        if group_id not in self.groups:
            self.groups[group_id] = Driven(group_id=group_id, **self._config)
        return self.groups[group_id]

    def sent(self, api: str) -> list[Any]:
        """The bodies of all events of an API so far."""
        return [body for name, body in self.events if name == api]

    def catch_up(self) -> None:
        """Respond to all events that have no response yet, and to further ones at once."""
        self.is_silent = False
        while self._unanswered:
            self._unanswered.pop(0)()

    # ---- what a gateway's channel and directory do ---------------------------------------------------------------

    def send(
        self, group_id: str, api: str, version: int, body: Message, caller: Caller, timeout: float
    ) -> RequestEvent:
        response: asyncio.Future[ResponseEnvelope] = asyncio.get_running_loop().create_future()
        event = RequestEvent(response)
        if self.is_away:
            asyncio.get_running_loop().call_later(timeout, _fail, response)
            return event
        event.appended = True
        self.events.append((api, body))
        answer = self.group(group_id).send(api, cast("Any", body), version=version, host=f"/{caller.host}")

        def respond() -> None:
            assert answer.response is not None
            raw = msgspec.Raw(msgspec.json.encode(answer.body))
            envelope = ResponseEnvelope(api, version, "", group_id, answer.response.error_code, raw)
            if not response.done():
                response.set_result(envelope)

        if self.is_silent:
            self._unanswered.append(respond)
        else:
            respond()
        return event

    @property
    def is_complete(self) -> bool:
        return True

    def entry(self, group_id: str) -> GroupDirectoryEntry | None:
        group = self.groups.get(group_id)
        return directory_entry(group.group) if group is not None and group.exists else None

    def entries(self) -> list[GroupDirectoryEntry]:
        return [entry for entry in map(self.entry, self.groups) if entry is not None]


class Gateway:
    """The group APIs of a gateway in front of a coordinator and a cluster without an authorizer."""

    def __init__(
        self,
        coordinator: LogicCoordinator,
        cluster: Cluster,
        forward: Any = None,
        types: Mapping[str, GroupType] = GROUP_TYPES,
        refresh_seconds: float = 0.0,
    ) -> None:
        internal_topics = InternalTopicRules(TopicNames())
        looks = LookSchedule(refresh_seconds)
        catalog = TopicCatalog(cast("ClusterTopics", cluster), on_change=looks.hasten)
        timeouts = GroupTimeouts(topic_refresh_seconds=refresh_seconds)
        backend = GroupBackend(
            cast("Any", coordinator),
            cast("Any", coordinator),
            _always_current,
            Authorizer(catalog, forward or _no_authorizer, hides=internal_topics.hides),
            every_group,
            policies=TimeoutPolicies(timeouts, timeout_policies(types.values())),
            lists=ListRequests(LoopShare()),
            reads=LargeReads(cast("Any", coordinator)),
            types=types,
            catalog=catalog,
            looks=looks,
            caller=GATEWAY,
            internal_topics=internal_topics,
        )
        self.catalog = catalog
        self.watched = backend.watched
        self.notifier = TopicNotifier(backend)
        self.topics_changed = self.notifier.topics_changed
        self.cleanup = OffsetCleanup(backend, LookSchedule(LISTING_SECONDS))
        self.apis = group_apis(backend) | GroupConfigHandlers(backend, forward or _no_authorizer).apis

    async def ask(self, key: int, version: int, body: Message) -> Any:
        """Send a request in a version; returns the response as the client reads it."""
        payload = to_wire(body, cast("Any", load_request_schema(key, version)))
        caller = Caller("client", "10.0.0.1", ANONYMOUS)
        served = self.apis[key]
        answer = await served.handle(ClientRequest(caller, NODE_ID, key, version, decoded(payload, served)))
        return as_read_by_client(answer, load_response_schema(key, version))


async def _always_current() -> bool:
    return True


async def _no_authorizer(_payload: Any) -> Any:
    return _Answer(ErrorCode.security_disabled)


class _Answer(msgspec.Struct):
    error_code: ErrorCode


def _fail(response: "asyncio.Future[ResponseEnvelope]") -> None:
    if not response.done():
        response.set_exception(ResponseTimedOut("the broker does not answer"))
