"""Conversations with a coordinator over Kafka's wire protocol, in any version, to be had with two of them.

What is said is a list of (what, answer); an answer is Kafka's fields as plain values. What may differ between a broker
and this coordinator is mapped: generated member ids are numbered, texts of errors are left out.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
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
from streaming.gateway.projection import to_wire

Ask = Callable[[Any, str], Awaitable[Any]]

NEWEST = {
    "OffsetCommit": (8, 2, 9),
    "OffsetFetch": (9, 1, 9),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "TxnOffsetCommit": (28, 0, 4),
    "DeleteGroups": (42, 0, 2),
    "OffsetDelete": (47, 0, 0),
}
"""Key, first and last version of each API."""

VERSIONS = range(10)
"""A story is told in one of these: every API in that version, or in its nearest."""

GENERATED_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4
FIRST_LEAVE_VERSION_WITH_MEMBERS = 3
FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_OF_ALL = 2
REBALANCE_IN_PROGRESS = "rebalance_in_progress"
PAUSE_SECONDS = 0.05


class Conversation:
    """Requests of one version, and what was answered."""

    def __init__(self, ask: Ask, version: int, group_id: str) -> None:
        self._ask = ask
        self._version = version
        self.group_id = group_id
        self.said: list[tuple[str, Any]] = []
        self._names: dict[str, str] = {}

    def version_of(self, api: str) -> int:
        """The version in which this API is spoken here."""
        _, first, last = NEWEST[api]
        return min(max(self._version, first), last)

    async def ask(self, api: str, body: Message, client_id: str = "client") -> Any:
        """Ask without writing down what is answered."""
        payload = to_wire(body, load_request_schema(NEWEST[api][0], self.version_of(api)))
        return await self._ask(payload, client_id)

    async def note(self, api: str, body: Message, client_id: str = "client") -> Any:
        """Ask, and write down what is answered."""
        answer = await self.ask(api, body, client_id)
        self.write(api, answer)
        return answer

    def write(self, api: str, answer: Any) -> None:
        """Write down an answer."""
        self.said.append((api, self._plain(answer)))

    def _plain(self, value: Any) -> Any:
        if is_dataclass(value):
            plain = {f.name: self._plain(getattr(value, f.name)) for f in fields(value)}
            return {name: item for name, item in plain.items() if name not in ("error_message", "throttle_time")}
        if isinstance(value, tuple | list):
            return sorted((self._plain(item) for item in value), key=repr)
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, timedelta):
            return value
        return self._name(value.replace(self.group_id, "GROUP")) if isinstance(value, str) else value

    def _name(self, text: str) -> str:
        if not GENERATED_ID.search(text):
            return text
        return self._names.setdefault(text, f"{GENERATED_ID.sub('', text)}#{len(self._names)}")

    # ---- requests ------------------------------------------------------------------------------------------

    def join_request(self, member_id: str = "", metadata: bytes = b"m", **extra: Any) -> JoinGroupRequest:
        """A join of a member of protocol type ``story``."""
        return JoinGroupRequest(
            self.group_id, 30_000, "story", [Protocol("p", metadata)], 60_000, member_id=member_id, **extra
        )

    async def joined(self, client_id: str, **extra: Any) -> Any:
        """Join for the first time, in as many steps as the version needs."""
        answer = await self.note("JoinGroup", self.join_request(**extra), client_id)
        if answer.error_code.name == "member_id_required":
            answer = await self.note("JoinGroup", self.join_request(answer.member_id, **extra), client_id)
        assert answer.error_code.name == "none", answer
        return answer

    def sync_request(self, joined: Any, assignments: dict[str, bytes], **extra: Any) -> SyncGroupRequest:
        """A sync into the generation that was joined."""
        return SyncGroupRequest(
            self.group_id,
            joined.generation_id,
            joined.member_id,
            protocol_type="story",
            protocol_name="p",
            assignments=[MemberAssignment(member, assigned) for member, assigned in assignments.items()],
            **extra,
        )

    def beat(self, joined: Any) -> HeartbeatRequest:
        """A heartbeat in the generation that was joined."""
        return HeartbeatRequest(self.group_id, joined.generation_id, joined.member_id)

    def leave_request(self, *member_ids: str) -> LeaveGroupRequest:
        """A leave; before v3 there is one member to a request."""
        if self.version_of("LeaveGroup") < FIRST_LEAVE_VERSION_WITH_MEMBERS:
            return LeaveGroupRequest(self.group_id, member_ids[0])
        return LeaveGroupRequest(self.group_id, members=[LeavingMember(member) for member in member_ids])

    def commit_request(self, topics: dict[str, list[int]], joined: Any = None, **extra: Any) -> OffsetCommitRequest:
        """A commit of offset 100 + partition, as a member or as nobody."""
        named = [
            TopicToCommit(name, [PartitionToCommit(p, 100 + p, 3, committed_metadata=f"about {p}") for p in partitions])
            for name, partitions in topics.items()
        ]
        if joined is None:
            return OffsetCommitRequest(self.group_id, named, **extra)
        return OffsetCommitRequest(self.group_id, named, joined.generation_id, joined.member_id, **extra)

    def fetch_request(self, topics: dict[str, list[int]] | None) -> OffsetFetchRequest:
        """A fetch of these partitions, or of all."""
        named = None if topics is None else [TopicToFetch(name, numbers) for name, numbers in topics.items()]
        if self.version_of("OffsetFetch") < FIRST_FETCH_VERSION_WITH_GROUPS:
            return OffsetFetchRequest(self.group_id, named)
        return OffsetFetchRequest(groups=[GroupToFetch(self.group_id, named)])

    async def described(self) -> Any:
        """Describe the group."""
        return await self.note("DescribeGroups", DescribeGroupsRequest([self.group_id]))


async def life_of_a_group(story: Conversation, topic: str) -> None:
    """Two members join, sync, are described, commit, fetch and leave; the group is deleted."""
    first = await story.joined("first")
    await story.note("SyncGroup", story.sync_request(first, {first.member_id: b"everything"}), "first")
    await story.note("Heartbeat", story.beat(first), "first")
    await story.described()
    await story.note("OffsetCommit", story.commit_request({topic: [0, 1]}, first), "first")
    await story.note("OffsetCommit", story.commit_request({topic: [0, 99], "no-such-topic": [0]}, first), "first")
    await story.note("OffsetFetch", story.fetch_request({topic: [0, 1, 2], "no-such-topic": [0]}), "first")
    if story.version_of("OffsetFetch") >= FIRST_FETCH_VERSION_OF_ALL:
        await story.note("OffsetFetch", story.fetch_request(None), "first")
    again, second = await _second_member(story, first)
    await story.note("LeaveGroup", story.leave_request(second.member_id), "second")
    await story.note("LeaveGroup", story.leave_request("nobody"), "second")
    await story.note("DeleteGroups", DeleteGroupsRequest([story.group_id]))
    await story.note("LeaveGroup", story.leave_request(again.member_id), "first")
    await story.described()
    delete = [TopicToDelete(topic, [PartitionToDelete(1), PartitionToDelete(99)])]
    await story.note("OffsetDelete", OffsetDeleteRequest(story.group_id, delete))
    await story.note("OffsetFetch", story.fetch_request({topic: [0, 1]}))
    await story.note("DeleteGroups", DeleteGroupsRequest([story.group_id, story.group_id]))
    await story.described()


async def _second_member(story: Conversation, first: Any) -> tuple[Any, Any]:
    """A second member joins; what both are answered, the first is told first."""
    member_id = ""
    if story.version_of("JoinGroup") >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        member_id = (await story.note("JoinGroup", story.join_request(), "second")).member_id
    parked = asyncio.create_task(story.ask("JoinGroup", story.join_request(member_id), "second"))
    try:
        while (await story.ask("Heartbeat", story.beat(first), "first")).error_code.name != REBALANCE_IN_PROGRESS:
            await asyncio.sleep(PAUSE_SECONDS)
        await story.note("Heartbeat", story.beat(first), "first")
        await story.described()
        again = await story.note("JoinGroup", story.join_request(first.member_id), "first")
        second = await parked
    finally:
        parked.cancel()
    story.write("JoinGroup", second)
    await story.note("OffsetCommit", story.commit_request({"no-such-topic": [0]}, again), "first")
    waiting = asyncio.create_task(story.ask("SyncGroup", story.sync_request(second, {}), "second"))
    try:
        shares = {again.member_id: b"one half", second.member_id: b"the other"}
        await story.note("SyncGroup", story.sync_request(again, shares), "first")
        story.write("SyncGroup", await waiting)
    finally:
        waiting.cancel()
    await story.described()
    return again, second


async def what_is_refused(story: Conversation, topic: str) -> None:
    """Strangers, wrong generations, wrong protocols, groups that are not there, and a static member that is fenced."""

    class Nobody:
        generation_id = 7
        member_id = "nobody"

    stranger = Nobody()
    await story.note("Heartbeat", story.beat(stranger))
    await story.note("SyncGroup", story.sync_request(stranger, {}))
    await story.note("JoinGroup", story.join_request("nobody"))
    await story.note("LeaveGroup", story.leave_request("nobody"))
    await story.note("OffsetCommit", story.commit_request({topic: [0]}, stranger))
    await story.note("OffsetFetch", story.fetch_request({topic: [0]}))
    await story.note("DeleteGroups", DeleteGroupsRequest([story.group_id]))
    await story.note(
        "OffsetDelete", OffsetDeleteRequest(story.group_id, [TopicToDelete(topic, [PartitionToDelete(0)])])
    )
    await story.note("OffsetCommit", story.commit_request({topic: [0]}))
    first = await story.joined("first")
    await story.note("SyncGroup", story.sync_request(first, {first.member_id: b"everything"}), "first")
    await story.note("Heartbeat", HeartbeatRequest(story.group_id, first.generation_id + 1, first.member_id))
    await story.note("OffsetCommit", story.commit_request({topic: [0]}, stranger))
    await story.note("OffsetCommit", story.commit_request({}, stranger))
    other = JoinGroupRequest(story.group_id, 30_000, "other", [Protocol("q", b"")], 60_000)
    await story.note("JoinGroup", other)
    await story.note("JoinGroup", JoinGroupRequest(story.group_id, 1, "story", [Protocol("p", b"")], 60_000))
    await story.note("JoinGroup", JoinGroupRequest("", 30_000, "story", [Protocol("p", b"")], 60_000))
    await story.note("Heartbeat", HeartbeatRequest("", 1, "nobody"))
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
    await story.note("TxnOffsetCommit", pending)
    await story.note("LeaveGroup", story.leave_request(first.member_id, "nobody"), "first")
