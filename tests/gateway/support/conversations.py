"""Sequences of requests in any version, sent to a broker's coordinator and to this one, whose responses are compared.

A recorded response is the API's name and Kafka's fields as plain values, without what may differ between the two
coordinators: generated member ids are numbered, and error messages are omitted.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from kio.index import load_request_schema

from coordinator_logic.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupToFetch,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    SyncGroupRequest,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TxnOffsetCommitRequest,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)
from tests.gateway.groups.topic_ids import in_version
from tests.support.wire_types import to_wire

Ask = Callable[[Any, str], Awaitable[Any]]

SERVED = {
    "OffsetCommit": (8, 2, 10),
    "OffsetFetch": (9, 1, 10),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "TxnOffsetCommit": (28, 0, 4),
    "DeleteGroups": (42, 0, 2),
    "OffsetDelete": (47, 0, 0),
}
"""Key, and the lowest and the highest version that the gateway serves and kio knows."""

VERSIONS = range(10)
"""The versions of a conversation: it uses each API in this version or in the nearest one. Version 10 of OffsetCommit
and OffsetFetch, which has the ids of topics in the place of their names, has tests of its own."""

GENERATED_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4
FIRST_LEAVE_VERSION_WITH_MEMBERS = 3
FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_WITH_ALL_TOPICS = 2
REBALANCE_IN_PROGRESS = "rebalance_in_progress"
PAUSE_SECONDS = 0.05


class Conversation:
    """Requests of one version, and the responses to them. ``topic_ids`` are the ids of topics, by name."""

    def __init__(self, ask: Ask, version: int, group_id: str, topic_ids: Mapping[str, str] | None = None) -> None:
        self._ask = ask
        self._version = version
        self._topic_ids = topic_ids or {}
        self.group_id = group_id
        self.responses: list[tuple[str, Any]] = []
        self._names: dict[str, str] = {}

    def version_of(self, api: str) -> int:
        """The version that this conversation uses for an API."""
        _, first, last = SERVED[api]
        return min(max(self._version, first), last)

    async def ask(self, api: str, body: Message, client_id: str = "client") -> Any:
        """Send a request and return its response, without recording it."""
        version = self.version_of(api)
        payload = to_wire(in_version(body, version, self._topic_ids), load_request_schema(SERVED[api][0], version))
        return await self._ask(payload, client_id)

    async def record(self, api: str, body: Message, client_id: str = "client") -> Any:
        """Send a request, and record and return its response."""
        answer = await self.ask(api, body, client_id)
        self.add_response(api, answer)
        return answer

    def add_response(self, api: str, answer: Any) -> None:
        """Record a response."""
        self.responses.append((api, self._normalized(answer)))

    def _normalized(self, value: Any) -> Any:
        if is_dataclass(value):
            plain = {f.name: self._normalized(getattr(value, f.name)) for f in fields(value)}
            return {name: item for name, item in plain.items() if name not in ("error_message", "throttle_time")}
        if isinstance(value, tuple | list):
            return sorted((self._normalized(item) for item in value), key=repr)
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, timedelta):
            return value
        return self._numbered(value.replace(self.group_id, "GROUP")) if isinstance(value, str) else value

    def _numbered(self, text: str) -> str:
        if not GENERATED_ID.search(text):
            return text
        return self._names.setdefault(text, f"{GENERATED_ID.sub('', text)}#{len(self._names)}")

    # ---- requests ------------------------------------------------------------------------------------------

    def join_request(self, member_id: str = "", metadata: bytes = b"m", **extra: Any) -> JoinGroupRequest:
        """A JoinGroup of a member with protocol type ``story``."""
        return JoinGroupRequest(
            self.group_id, 30_000, "story", [Protocol("p", metadata)], 60_000, member_id=member_id, **extra
        )

    async def joined(self, client_id: str, **extra: Any) -> Any:
        """Join as a new member, with a second request if the version requires it (KIP-394)."""
        answer = await self.record("JoinGroup", self.join_request(**extra), client_id)
        if answer.error_code.name == "member_id_required":
            answer = await self.record("JoinGroup", self.join_request(answer.member_id, **extra), client_id)
        assert answer.error_code.name == "none", answer
        return answer

    def sync_request(self, joined: Any, assignments: dict[str, bytes], **extra: Any) -> SyncGroupRequest:
        """A SyncGroup for the generation that was joined."""
        return SyncGroupRequest(
            self.group_id,
            joined.generation_id,
            joined.member_id,
            protocol_type="story",
            protocol_name="p",
            assignments=[MemberAssignment(member, assigned) for member, assigned in assignments.items()],
            **extra,
        )

    def heartbeat_request(self, joined: Any) -> HeartbeatRequest:
        """A Heartbeat in the generation that was joined."""
        return HeartbeatRequest(self.group_id, joined.generation_id, joined.member_id)

    def leave_request(self, *member_ids: str) -> LeaveGroupRequest:
        """A LeaveGroup; before v3 a request names one member."""
        if self.version_of("LeaveGroup") < FIRST_LEAVE_VERSION_WITH_MEMBERS:
            return LeaveGroupRequest(self.group_id, member_ids[0])
        return LeaveGroupRequest(self.group_id, members=[LeavingMember(member) for member in member_ids])

    def commit_request(self, topics: dict[str, list[int]], joined: Any = None, **extra: Any) -> OffsetCommitRequest:
        """A commit of offset 100 + partition, as a member or without one."""
        named = [
            TopicToCommit(name, [PartitionToCommit(p, 100 + p, 3, committed_metadata=f"about {p}") for p in partitions])
            for name, partitions in topics.items()
        ]
        if joined is None:
            return OffsetCommitRequest(self.group_id, named, **extra)
        return OffsetCommitRequest(self.group_id, named, joined.generation_id, joined.member_id, **extra)

    def fetch_request(self, topics: dict[str, list[int]] | None) -> OffsetFetchRequest:
        """An OffsetFetch of these partitions, or of all."""
        named = None if topics is None else [TopicToFetch(name, numbers) for name, numbers in topics.items()]
        if self.version_of("OffsetFetch") < FIRST_FETCH_VERSION_WITH_GROUPS:
            return OffsetFetchRequest(self.group_id, named)
        return OffsetFetchRequest(groups=[GroupToFetch(self.group_id, named)])

    async def describe(self) -> Any:
        """Describe the group."""
        return await self.record("DescribeGroups", DescribeGroupsRequest([self.group_id]))


async def group_lifecycle(story: Conversation, topic: str) -> None:
    """Two members join, sync, are described, commit, fetch and leave; the group is deleted."""
    first = await story.joined("first")
    await story.record("SyncGroup", story.sync_request(first, {first.member_id: b"everything"}), "first")
    await story.record("Heartbeat", story.heartbeat_request(first), "first")
    await story.describe()
    await story.record("OffsetCommit", story.commit_request({topic: [0, 1]}, first), "first")
    await story.record("OffsetCommit", story.commit_request({topic: [0, 99], "no-such-topic": [0]}, first), "first")
    await story.record("OffsetFetch", story.fetch_request({topic: [0, 1, 2], "no-such-topic": [0]}), "first")
    if story.version_of("OffsetFetch") >= FIRST_FETCH_VERSION_WITH_ALL_TOPICS:
        await story.record("OffsetFetch", story.fetch_request(None), "first")
    again, second = await _second_member(story, first)
    await story.record("LeaveGroup", story.leave_request(second.member_id), "second")
    await story.record("LeaveGroup", story.leave_request("nobody"), "second")
    await story.record("DeleteGroups", DeleteGroupsRequest([story.group_id]))
    await story.record("LeaveGroup", story.leave_request(again.member_id), "first")
    await story.describe()
    delete = [TopicToDelete(topic, [PartitionToDelete(1), PartitionToDelete(99)])]
    await story.record("OffsetDelete", OffsetDeleteRequest(story.group_id, delete))
    await story.record("OffsetFetch", story.fetch_request({topic: [0, 1]}))
    await story.record("DeleteGroups", DeleteGroupsRequest([story.group_id, story.group_id]))
    await story.describe()


async def _second_member(story: Conversation, first: Any) -> tuple[Any, Any]:
    """A second member joins; returns the responses to both joins, the first member's first."""
    member_id = ""
    if story.version_of("JoinGroup") >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        member_id = (await story.record("JoinGroup", story.join_request(), "second")).member_id
    parked = asyncio.create_task(story.ask("JoinGroup", story.join_request(member_id), "second"))
    try:
        while (
            await story.ask("Heartbeat", story.heartbeat_request(first), "first")
        ).error_code.name != REBALANCE_IN_PROGRESS:
            await asyncio.sleep(PAUSE_SECONDS)
        await story.record("Heartbeat", story.heartbeat_request(first), "first")
        await story.describe()
        again = await story.record("JoinGroup", story.join_request(first.member_id), "first")
        second = await parked
    finally:
        parked.cancel()
    story.add_response("JoinGroup", second)
    await story.record("OffsetCommit", story.commit_request({"no-such-topic": [0]}, again), "first")
    waiting = asyncio.create_task(story.ask("SyncGroup", story.sync_request(second, {}), "second"))
    try:
        shares = {again.member_id: b"one half", second.member_id: b"the other"}
        await story.record("SyncGroup", story.sync_request(again, shares), "first")
        story.add_response("SyncGroup", await waiting)
    finally:
        waiting.cancel()
    await story.describe()
    return again, second


async def refused_requests(story: Conversation, topic: str) -> None:
    """Unknown members, wrong generations and protocols, groups that do not exist, invalid group ids and timeouts."""

    class UnknownMember:
        generation_id = 7
        member_id = "nobody"

    unknown = UnknownMember()
    await story.record("Heartbeat", story.heartbeat_request(unknown))
    await story.record("SyncGroup", story.sync_request(unknown, {}))
    await story.record("JoinGroup", story.join_request("nobody"))
    await story.record("LeaveGroup", story.leave_request("nobody"))
    await story.record("OffsetCommit", story.commit_request({topic: [0]}, unknown))
    await story.record("OffsetFetch", story.fetch_request({topic: [0]}))
    await story.record("DeleteGroups", DeleteGroupsRequest([story.group_id]))
    await story.record(
        "OffsetDelete", OffsetDeleteRequest(story.group_id, [TopicToDelete(topic, [PartitionToDelete(0)])])
    )
    await story.record("OffsetCommit", story.commit_request({topic: [0]}))
    first = await story.joined("first")
    await story.record("SyncGroup", story.sync_request(first, {first.member_id: b"everything"}), "first")
    await story.record("Heartbeat", HeartbeatRequest(story.group_id, first.generation_id + 1, first.member_id))
    await story.record("OffsetCommit", story.commit_request({topic: [0]}, unknown))
    await story.record("OffsetCommit", story.commit_request({}, unknown))
    other = JoinGroupRequest(story.group_id, 30_000, "other", [Protocol("q", b"")], 60_000)
    await story.record("JoinGroup", other)
    await story.record("JoinGroup", JoinGroupRequest(story.group_id, 1, "story", [Protocol("p", b"")], 60_000))
    await story.record("JoinGroup", JoinGroupRequest("", 30_000, "story", [Protocol("p", b"")], 60_000))
    await story.record("Heartbeat", HeartbeatRequest("", 1, "nobody"))
    pending = TxnOffsetCommitRequest(
        story.group_id,
        story.group_id,
        4711,
        0,
        [
            TxnTopicToCommit("no-such-topic", [TxnPartitionToCommit(0, 1)]),
            TxnTopicToCommit(topic, [TxnPartitionToCommit(99, 1)]),
        ],
    )
    await story.record("TxnOffsetCommit", pending)
    await story.record("LeaveGroup", story.leave_request(first.member_id, "nobody"), "first")
