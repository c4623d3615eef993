"""Answers in which details count: each is field by field that of a broker's coordinator, texts and order included."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import pytest
from kio.index import load_request_schema

from coordinator_logic.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    Api,
)
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    TopicToCommit,
    TopicToDelete,
)
from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support.direct_handlers import direct_handlers, wait_connected
from tests.gateway.support.timeouts import response_timeouts
from tests.oracle.reference_broker import await_coordinators
from tests.oracle.sides.connection import Connections
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.parameters.long_tests import mostly_long
from tests.support.topics import create_topic, unique
from tests.support.wire_types import to_wire

GENERATED_ID = re.compile(r"(client-)?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]{22})")
"""Ids as the coordinator generates them, and as a broker does for a member of a consumer group."""
MEMBER = "1af9e9e0-7a9b-4e1c-9a0f-1d1b2f6f7c11"


class Asked(NamedTuple):
    """A request of a version."""

    api: Api[Any, Any]
    version: int
    body: Message


def commit(group_id: str, version: int, *topics: tuple[str, list[int]]) -> Asked:
    named = [TopicToCommit(name, [PartitionToCommit(each, 5) for each in numbers]) for name, numbers in topics]
    return Asked(OFFSET_COMMIT, version, OffsetCommitRequest(group_id, named))


def deletion(group_id: str, *topics: tuple[str, list[int]]) -> Asked:
    named = [TopicToDelete(name, [PartitionToDelete(each) for each in numbers]) for name, numbers in topics]
    return Asked(OFFSET_DELETE, 0, OffsetDeleteRequest(group_id, named))


def heartbeat(group_id: str, epoch: int, **changed: Any) -> Asked:
    joining: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [], "topic_partitions": []}
    sent = (joining if epoch == 0 else {}) | changed
    return Asked(CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest(group_id, MEMBER, epoch, **sent))


def join(group_id: str, version: int = 5, **changed: Any) -> Asked:
    sent: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "stranger",
        "protocol_type": "consumer",
        "protocols": [Protocol("range", b"m")],
    } | changed
    return Asked(JOIN_GROUP, version, JoinGroupRequest(group_id, **sent))


def doubled_topics(group_id: str, topic: str) -> list[Asked]:
    """Requests that name a topic twice, also with a partition or a topic that does not exist."""
    missing = unique("missing")
    once_more = [
        [(topic, [0]), (topic, [1, 0])],
        [(topic, [0]), (topic, [1]), (topic, [99])],
        [(missing, [0]), (topic, [0]), (missing, [1]), (topic, [1])],
    ]
    commits = [commit(group_id, version, *topics) for version in (2, 3, 9) for topics in once_more]
    return [*commits, *(deletion(group_id, *topics) for topics in once_more)]


def empty_group_id(_group_id: str, topic: str) -> list[Asked]:
    """What old clients do with the group whose id is empty."""
    described = [Asked(DESCRIBE_GROUPS, version, DescribeGroupsRequest([""])) for version in (0, 1, 5, 6)]
    return [
        *described,
        commit("", 2, (topic, [0])),
        *described,
        Asked(DELETE_GROUPS, 2, DeleteGroupsRequest([""])),
        *described,
    ]


def refused_heartbeats(group_id: str, topic: str) -> list[Asked]:
    """Heartbeats of the consumer group protocol that are refused with a text."""
    patterns = ["(", "[a", "a**", "*a", "a{2,1}", "\\", "\\8", "(?=a)", "(?<n", "a)", "[b-a]", 'it\'s "a" (']
    return [
        heartbeat(group_id, -1),
        heartbeat(group_id, 3),
        heartbeat(group_id, 0, server_assignor="other"),
        *(heartbeat(group_id, 0, subscribed_topic_regex=pattern) for pattern in patterns),
        commit(group_id, 8, (topic, [0])),
        heartbeat(group_id, -1),
        heartbeat(group_id, 3),
    ]


def joins_of_a_consumer_group(group_id: str, topic: str) -> list[Asked]:
    """Members of the classic protocol that a consumer group with a member refuses."""
    return [
        heartbeat(group_id, 0),
        join(group_id),
        join(group_id, group_instance_id="unknown"),
        join(group_id, protocol_type="connect"),
        join(group_id, protocols=[]),
        join(group_id, session_timeout_ms=1),
        join(group_id, member_id=""),
        join(group_id, 3, member_id="", protocol_type="connect"),
        Asked(LEAVE_GROUP, 4, LeaveGroupRequest(group_id, members=[LeavingMember("stranger")])),
        Asked(LEAVE_GROUP, 4, LeaveGroupRequest(group_id, members=[LeavingMember(MEMBER, "unknown")])),
        Asked(DESCRIBE_GROUPS, 6, DescribeGroupsRequest([group_id, f"{group_id}-missing"])),
    ]


def exact(value: Any) -> Any:
    """An answer with all its fields but the throttle time; generated ids have one name."""
    if is_dataclass(value):
        return {each.name: exact(getattr(value, each.name)) for each in fields(value) if each.name != "throttle_time"}
    if isinstance(value, tuple | list):
        return [exact(item) for item in value]
    return (
        value if not isinstance(value, str) or value == MEMBER else ("ID" if GENERATED_ID.fullmatch(value) else value)
    )


@pytest.mark.parametrize(
    "script",
    mostly_long(
        [doubled_topics, empty_group_id, refused_heartbeats, joins_of_a_consumer_group],
        [refused_heartbeats, joins_of_a_consumer_group],
    ),
    ids=lambda each: each.__name__,
)
def test_every_field_is_the_brokers(
    coordinator: CoordinatorProcess, broker: EmbeddedBroker, script: Callable[[str, str], list[Asked]]
) -> None:
    topic, group_id = unique("exact"), unique("exact")
    create_topic(broker.bootstrap_servers, topic, 2)
    requests = script(group_id, topic)

    async def answers(ask: Any) -> list[Any]:
        return [
            exact(await ask(to_wire(body, load_request_schema(api.key or 0, version)), "client"))
            for api, version, body in requests
        ]

    async def play() -> tuple[list[Any], list[Any]]:
        await await_coordinators(broker.bootstrap_servers)
        reference = Connections(broker.bootstrap_servers)
        serving = direct_handlers(coordinator.bootstrap_servers, coordinator.topics, timeouts=response_timeouts())
        try:
            async with serving as gateway:
                await wait_connected(gateway)
                return await answers(gateway.ask), await answers(reference.ask)
        finally:
            reference.close()

    for asked, ours, theirs in zip(requests, *asyncio.run(play()), strict=True):
        assert (asked, ours) == (asked, theirs)
