"""What the handlers of the group APIs share: their dependencies, and a request event with its response.

It also says what an API and a type of groups consist of in the gateway; :mod:`.group_types` and :mod:`.registry` list
them.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.client.directory import GroupDirectory
from streaming.client.errors import CoordinatorError, error_of
from streaming.contract.records import UNREADABLE
from streaming.gateway.groups.channel import GroupChannel, RequestEvent
from streaming.gateway.groups.commit_order import CommitOrder
from streaming.gateway.groups.error_responses import error_response, outage_error
from streaming.gateway.groups.first_contact.contacts import FirstContacts
from streaming.gateway.groups.large_reads import LargeReads, Room, enter_room
from streaming.gateway.groups.list_requests import MAX_REQUEST_ENTRIES, ListRequests
from streaming.gateway.groups.look_schedule import LookSchedule
from streaming.gateway.groups.timeout_policies import PolicyOf, TimeoutPolicies
from streaming.gateway.groups.watched_groups import Subscription, WatchedGroups
from streaming.gateway.security.authorization import Authorizer
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.security.topic_catalog import TopicCatalog
from streaming.gateway.wire.client_request import Caller, Feature, Handler

IsCoordinator = Callable[[str, int], bool]
"""Whether clients find the broker with that node id as the coordinator of that group: ``(group_id, node_id)``."""

KeyT = TypeVar("KeyT", bound=Hashable)
EntryT = TypeVar("EntryT")
RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class FoundGroup(NamedTuple):
    """The subscriptions of a group's members, by member id, and the ids of the topics that it assigns, by name."""

    subscriptions: Mapping[str, Subscription]
    assigned: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class GroupApi:
    """An API of groups.

    make_handler: makes the handler, given its dependencies.
    policy: the timeout policy; None for an API that is answered without a request event.
    last_version: the last version that is served, if it is not the coordinator's.
    max_entries, first_version_with_topic_ids: see :class:`ServedApi`.
    """

    api: Api[Any, Any]
    make_handler: Callable[["GroupBackend"], Handler]
    policy: PolicyOf | None
    max_entries: int | None = MAX_REQUEST_ENTRIES
    last_version: int | None = None
    first_version_with_topic_ids: int | None = None


@dataclass(frozen=True, eq=False)
class GroupType:
    """What the gateway does differently for the groups of a type.

    name: as in the directory.
    apis: the APIs of this type alone.
    feature: shown to clients with these APIs.
    look_up: describes a group to the gateway, GROUP_ID_NOT_FOUND for one of another type, or another error if the
        coordinator does not answer. None for a type whose members assign the partitions themselves: the gateway tells
        its groups of no topics.
    topics_to_convert: the topics of a group's members that a group of another type must be told of if a join makes it
        one; None for a type whose groups are not converted.
    """

    name: str
    apis: tuple[GroupApi, ...]
    feature: Feature | None = None
    look_up: "Callable[[GroupBackend, str], Awaitable[FoundGroup | Error]] | None" = None
    topics_to_convert: "Callable[[GroupBackend, str], Awaitable[set[str]]] | None" = None


@dataclass(frozen=True)
class GroupBackend:
    """The dependencies of the handlers, shared by all connections.

    is_directory_current: waits until the directory has the newest records, see :meth:`CurrentDirectory.is_current`.
    types: the types of groups, by name.
    catalog: the cluster's topics.
    looks: when the gateway looks at the topics of groups.
    caller: the gateway itself, as the caller of its own requests.
    internal_topics: those of the coordinator, which no pattern matches, and what the gateway refuses of them.
    contacts: decides about groups that the gateway meets for the first time; None: it looks up none.
    watched: the groups that learn of topics and whose members are served here.
    committed_topics: names and ids of topics for which offsets were committed here since the last look at all topics.
    """

    channel: GroupChannel
    directory: GroupDirectory
    is_directory_current: Callable[[], Awaitable[bool]]
    authorizer: Authorizer
    is_coordinator: IsCoordinator
    policies: TimeoutPolicies
    lists: ListRequests
    reads: LargeReads
    types: Mapping[str, GroupType]
    catalog: TopicCatalog
    looks: LookSchedule
    caller: Caller
    internal_topics: InternalTopicRules
    watched: WatchedGroups = field(default_factory=WatchedGroups)
    committed_topics: set[tuple[str, str]] = field(default_factory=set)
    contacts: FirstContacts | None = None
    commit_order: CommitOrder = field(default_factory=CommitOrder)

    def type_of(self, group_id: str) -> GroupType | None:
        """The type of a group as of the directory, which is as current as the last completed batch."""
        entry = self.directory.entry(group_id)
        return None if entry is None else self.types.get(entry.group_type)

    def has_members(self, group_id: str) -> bool:
        """Whether a group has members as of the directory."""
        entry = self.directory.entry(group_id)
        return entry is not None and entry.members > 0

    async def ask_each(
        self,
        api: Api[Any, Any],
        caller: Caller,
        keys: Iterable[KeyT],
        ask: Callable[[KeyT], Awaitable[EntryT]],
    ) -> dict[KeyT, EntryT]:
        """Ask for the groups of a list, see :meth:`ListRequests.ask_each`, as long as the API's timeout policy says."""
        return await self.lists.ask_each(caller, keys, ask, self.policies.of(api).seconds)

    async def refusal(self, api: Api[Any, Any], group_id: str, body: Message, caller: Caller) -> Error | None:
        """Why a request for a group that this coordinator does not have cannot go on, see :class:`FirstContacts`.

        None if it can. A retriable error is the one that the API's policy has for a request that was not sent.
        """
        if self.contacts is None:
            return None
        refusal = await self.contacts.refusal(group_id, caller)
        return self.policies.of(api, body).unsent if refusal is Error.COORDINATOR_LOAD_IN_PROGRESS else refusal

    async def first_request(
        self, api: Api[RequestT, ResponseT], version: int, group_id: str, body: RequestT, caller: Caller
    ) -> ResponseT:
        """Like :meth:`request`, for one that depends on the group's offsets and may be the first one for the group."""
        refusal = await self.refusal(api, group_id, body, caller)
        if refusal is not None:
            return error_response(api, body, version, refusal)
        return await self.request(api, version, group_id, body, caller)

    async def request(
        self, api: Api[RequestT, ResponseT], version: int, group_id: str, body: RequestT, caller: Caller
    ) -> ResponseT:
        """Append a request event and wait for its response, as long as the API's timeout policy says.

        Every failure becomes a response with the error that the policy names; nothing is raised.
        """
        return await self.response(api, version, body, self.send(api, version, group_id, body, caller))

    async def read(
        self,
        api: Api[RequestT, ResponseT],
        version: int,
        group_id: str,
        body: RequestT,
        caller: Caller,
        most: int | None = None,
        repeated: int = 0,
    ) -> ResponseT:
        """As :meth:`request`, for an answer that may be as large as the group.

        It waits for room first. ``most`` and ``repeated`` are those of :meth:`LargeReads.room`.
        """
        is_for_client = caller is not self.caller
        room = self.reads.room(api.name, caller, group_id, most, repeated, is_for_client=is_for_client)
        return await self._request_in(room, api, version, group_id, body, caller)

    async def member_request(
        self,
        api: Api[RequestT, ResponseT],
        version: int,
        group_id: str,
        body: RequestT,
        caller: Caller,
        member: str,
    ) -> ResponseT:
        """As :meth:`request`, for a request that waits for room first, as :meth:`LargeReads.member_room` says."""
        room = self.reads.member_room(api.name, caller, group_id, member)
        return await self._request_in(room, api, version, group_id, body, caller)

    async def _request_in(
        self,
        room: Room,
        api: Api[RequestT, ResponseT],
        version: int,
        group_id: str,
        body: RequestT,
        caller: Caller,
    ) -> ResponseT:
        policy = self.policies.of(api, body)
        async with AsyncExitStack() as stack:
            answered = await enter_room(stack, room, policy.seconds)
            if answered is None:
                return error_response(api, body, version, policy.unsent)
            event = self.send(api, version, group_id, body, caller)
            response = await self.response(api, version, body, event)
            answered(0 if event.response.exception() else len(event.response.result().body))
            return response

    def send(
        self, api: Api[RequestT, ResponseT], version: int, group_id: str, body: RequestT, caller: Caller
    ) -> RequestEvent:
        """Append a request event, whose response is expected as long as the API's timeout policy says."""
        seconds = self.policies.of(api, body).seconds
        return self.channel.send(group_id, api.name, version, body, caller, seconds)

    async def response(
        self, api: Api[RequestT, ResponseT], version: int, body: RequestT, event: RequestEvent
    ) -> ResponseT:
        """Wait for the response to an event of :meth:`send`; nothing is raised, as in :meth:`request`."""
        try:
            envelope = await event.response
        except CoordinatorError as failure:
            error = outage_error(self.policies.of(api, body), failure, appended=event.appended)
            return error_response(api, body, version, error)
        return decode_response(api, body, version, envelope)


def decode_response(
    api: Api[RequestT, ResponseT], body: RequestT, version: int, envelope: ResponseEnvelope
) -> ResponseT:
    """The body of the coordinator's response, or an error response made from the envelope's error code."""
    try:
        response: ResponseT | None = msgspec.json.decode(envelope.body, type=api.response_type | None)
    except UNREADABLE:
        return error_response(api, body, version, Error.UNKNOWN_SERVER_ERROR)
    if response is None:
        return error_response(api, body, version, error_of(envelope.error_code))
    return response
