"""A further type of groups is one entry of the table and the files of its APIs: here, an invented one."""

import time

from msgspec.structs import replace

from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatAssignment,
    JoinGroupRequest,
    ListGroupsRequest,
    Message,
    Protocol,
)
from coordinator_logic.records import GroupDirectoryEntry
from streaming.gateway.groups.backend import FoundGroup, GroupApi, GroupBackend, GroupType
from streaming.gateway.groups.group_types import GROUP_TYPES
from streaming.gateway.groups.registry import timeout_policies
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicies, TimeoutPolicy
from streaming.gateway.groups.watched_groups import Subscription
from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.wire.client_request import ClientRequest, Feature, Handler
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator, topic_id
from tests.support.virtual_time import run_in_virtual_time

GROUP, LIST_GROUPS, JOIN_GROUP = "the-group", 16, 11


class InventedHeartbeatRequest(Message, frozen=True):
    """With the fields of kio's ShareGroupHeartbeat, whose bytes it borrows."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


class InventedHeartbeatResponse(Message, frozen=True):
    """Likewise."""

    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ConsumerGroupHeartbeatAssignment | None = None


INVENTED_HEARTBEAT = Api(
    "ShareGroupHeartbeat", 76, range(1, 2), InventedHeartbeatRequest, InventedHeartbeatResponse, {}
)


def heartbeat_handler(backend: GroupBackend) -> Handler:
    async def handle(request: ClientRequest) -> Message:
        body: InventedHeartbeatRequest = request.payload
        backend.watched.watch(body.group_id, time.monotonic()).needs_lookup = True
        return InventedHeartbeatResponse(member_id=body.member_id, heartbeat_interval_ms=3_000)

    return handle


def patient_policy(_timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    return TimeoutPolicy(77.0, Error.NONE, Error.NONE)


async def look_up(_backend: GroupBackend, _group_id: str) -> FoundGroup | Error:
    return FoundGroup({"m": Subscription(frozenset({"t"}))}, {})


INVENTED = GroupType(
    "invented",
    apis=(GroupApi(INVENTED_HEARTBEAT, heartbeat_handler, patient_policy, first_version_with_topic_ids=0),),
    feature=Feature("invented.version", 0, 3),
    look_up=look_up,
)
TYPES = {**GROUP_TYPES, INVENTED.name: INVENTED}


class InventingCoordinator(LogicCoordinator):
    """Its directory says of every group that it is of the invented type."""

    def entry(self, group_id: str) -> GroupDirectoryEntry | None:
        entry = super().entry(group_id)
        return entry and replace(entry, group_type=INVENTED.name)


def scene() -> tuple[LogicCoordinator, Gateway]:
    coordinator = InventingCoordinator()
    return coordinator, Gateway(coordinator, Cluster(t=2), types=TYPES)


async def join(gateway: Gateway, member_id: str = "") -> str:
    """Join as the only member of a group; returns the member id."""
    request = JoinGroupRequest(GROUP, 10_000, "consumer", [Protocol("range", b"")], member_id=member_id)
    answer = await gateway.ask(JOIN_GROUP, 3, request)
    assert answer.error_code.name == "none"
    return str(answer.member_id)


def topics_told(coordinator: LogicCoordinator) -> list[tuple[str, str, int]]:
    return [
        (topic.name, topic.topic_id, topic.partitions)
        for described in coordinator.sent("TopicsDescribed")
        for topic in described.topics
    ]


def test_the_apis_of_a_type_are_served_with_its_feature_and_its_timeout() -> None:
    _, gateway = scene()
    served = gateway.apis[76]
    assert (served.name, served.feature) == ("ShareGroupHeartbeat", INVENTED.feature)
    assert served.first_version_with_topic_ids == 0
    policies = TimeoutPolicies(GroupTimeouts(), timeout_policies(TYPES.values()))
    assert policies.of(INVENTED_HEARTBEAT).seconds == 77.0

    async def story() -> None:
        answer = await gateway.ask(76, 1, InventedHeartbeatRequest(GROUP, "m", 0))
        assert (answer.error_code.name, answer.member_id, answer.assignment) == ("none", "m", None)
        assert answer.heartbeat_interval.total_seconds() == 3

    run_in_virtual_time(story())


def test_a_type_that_learns_topics_is_told_of_those_that_its_look_up_finds() -> None:
    coordinator, gateway = scene()

    async def story() -> None:
        await gateway.ask(76, 1, InventedHeartbeatRequest(GROUP, "m", 0))
        await gateway.notifier.refresh()
        assert topics_told(coordinator) == [("t", topic_id(0), 2)]

    run_in_virtual_time(story())


def test_so_is_one_that_a_classic_member_joins() -> None:
    coordinator, gateway = scene()

    async def story() -> None:
        await join(gateway, await join(gateway))
        await gateway.notifier.refresh()
        assert topics_told(coordinator) == [("t", topic_id(0), 2)]

    run_in_virtual_time(story())


def test_groups_are_listed_by_their_type() -> None:
    _, gateway = scene()

    async def story() -> None:
        await join(gateway)
        (listed,) = (await gateway.ask(LIST_GROUPS, 5, ListGroupsRequest(types_filter=["Invented"]))).groups
        assert (listed.group_id, listed.group_type) == (GROUP, "invented")
        assert (await gateway.ask(LIST_GROUPS, 5, ListGroupsRequest(types_filter=["classic"]))).groups == ()

    run_in_virtual_time(story())


def test_a_type_that_the_gateway_does_not_have_is_listed_and_learns_no_topics() -> None:
    coordinator = InventingCoordinator()
    gateway = Gateway(coordinator, Cluster(t=2))

    async def story() -> None:
        await join(gateway)
        await gateway.notifier.refresh()
        assert topics_told(coordinator) == []
        (listed,) = (await gateway.ask(LIST_GROUPS, 5, ListGroupsRequest())).groups
        assert listed.group_type == "invented"

    run_in_virtual_time(story())


def test_the_apis_of_all_types_are_those_that_the_proxy_lets_the_gateway_serve() -> None:
    _, gateway = scene()
    of_types = {api.api.key for of_type in GROUP_TYPES.values() for api in of_type.apis}
    assert all(API_POLICIES[key].treatment is Treatment.SERVED for key in of_types if key is not None)
    assert of_types <= gateway.apis.keys()
