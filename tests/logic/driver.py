"""A group driven by hand: a fake clock, one request a step, and every invariant looked at after every step.

A :class:`Driven` group is stepped as in production: from its snapshot, with the requests of a batch and the
batch's time. Each step runs twice and must put out the same bytes. Time passes only where a test says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.consumer_protocol import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import (
    CommittedPartition,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    PartitionToDelete,
    Protocol,
    RequestBody,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
    TopicsDeletedRequest,
    TopicsDeletedResponse,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TxnMarker,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_logic.records import JournalEntry, Record
from coordinator_logic.states import State
from coordinator_logic.step import StepResult, step
from tests.logic.invariants import Step, check_journal, check_step

GROUP_ID = "the-group"
SESSION_MS = 5_000
REBALANCE_MS = 10_000
DELAY_MS = 3_000
NEW_MEMBER_MS = 300_000

HARNESS_CONFIG = CoordinatorConfig(
    group_min_session_timeout_ms=10,
    group_max_session_timeout_ms=600_000,
    expiry_allowance_ms=0,
    offsets_retention_check_interval_ms=10 * 365 * 24 * 3_600_000,
)
"""Short sessions, no allowance, so that what a test reads as a time is the time, and nobody who cleans up."""

Offsets = Mapping[tuple[str, int], int]
BodyT = TypeVar("BodyT", bound=ResponseBody)


class Answer(Generic[BodyT]):
    """What became of one request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None

    @property
    def parked(self) -> bool:
        """Whether it has not been answered."""
        return self.response is None

    @property
    def body(self) -> BodyT:
        """The answer's body."""
        assert self.response is not None, f"{self.request.address.api} has not been answered"
        return self.response.body  # type: ignore[return-value]

    @property
    def error(self) -> Error:
        """The error of the whole request."""
        assert self.response is not None, f"{self.request.address.api} has not been answered"
        return Error(self.response.error_code)


@dataclass(frozen=True)
class Joined:
    """A member as its client knows it."""

    member_id: str
    generation_id: int = -1
    group_instance_id: str | None = None
    leader: str = ""

    @property
    def leads(self) -> bool:
        """Whether it was told that it is the leader."""
        return self.member_id == self.leader


def joined(answer: Answer[JoinGroupResponse]) -> Joined:
    """The member that a successful JoinGroup made."""
    assert answer.error is Error.NONE, answer.error
    body, asked = answer.body, answer.request.body
    assert isinstance(asked, JoinGroupRequest)
    return Joined(body.member_id, body.generation_id, asked.group_instance_id, body.leader)


def listing(*names: str, metadata: bytes = b"subscription") -> list[Protocol]:
    """A member's protocols in the order of its preference."""
    return [Protocol(name, metadata) for name in names]


def reading(*topics: str, protocol: str = "range") -> list[Protocol]:
    """What a consumer lists that subscribes to these topics."""
    return listing(protocol, metadata=encode_subscription(Subscription(list(topics))))


def assignment_of(member_id: str) -> bytes:
    """What the leaders of these tests assign to a member."""
    return f"partitions of {member_id}".encode()


class Driven:
    """One group, its clock, everything it was asked (``log``) and what it answered last (``answered``)."""

    def __init__(self, *, group_id: str = GROUP_ID, started_at: int = 0, **config: Any) -> None:
        self.group_id = group_id
        self.config: CoordinatorConfig = msgspec.structs.replace(HARNESS_CONFIG, **config)
        self.now = 1_000_000
        self.started_at = started_at
        self.snapshot: bytes | None = None
        self.journal: list[JournalEntry] = []
        self.wake_at: int | None = None
        self.log: list[Request] = []
        self.answered: list[Answer[Any]] = []
        self._answers: dict[str, Answer[Any]] = {}
        self._next_offset = 0

    # ---- looking at the group ------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """A copy of the group as it is now."""
        assert self.snapshot is not None, f"group {self.group_id!r} does not exist"
        return snapshot.decode(self.snapshot)

    @property
    def exists(self) -> bool:
        """Whether there is a group."""
        return self.snapshot is not None

    def state(self) -> State:
        """The group's state; no property, since a type checker would take it for unchanging."""
        return self.group.state

    @property
    def records(self) -> list[Record]:
        """All that has changed in the group, oldest first."""
        return [entry.record for entry in self.journal]

    # ---- time ----------------------------------------------------------------------------------------------

    def sleep(self, ms: int) -> list[Answer[Any]]:
        """Let time pass; what was answered meanwhile."""
        self.now += ms
        return self.step([])

    def sleep_with_heartbeats(self, ms: int, *members: Joined) -> None:
        """Let time pass while the members' heartbeats come often enough, whatever they are answered."""
        end = self.now + ms
        while self.now < end:
            self.sleep(min(SESSION_MS // 2, end - self.now))
            for member in members:
                self.heartbeat(member)

    def restart(self) -> None:
        """The coordinator starts anew, now."""
        self.started_at = self.now

    def step(self, requests: Sequence[Request], batch_time: int | None = None) -> list[Answer[Any]]:
        """One batch; the requests that were answered in it."""
        batch_time = self.now if batch_time is None else batch_time
        before = self.snapshot
        result, output = self._run(before, requests, batch_time)
        assert self._run(before, requests, batch_time)[1] == output, "the same batch gave something else"
        self.journal += result.journal
        self.wake_at = result.wake_at
        self.snapshot = None if result.group is None else snapshot.encode(result.group)
        self.log += requests
        self.answered = [self._settle(response) for response in result.responses]
        copy = None if before is None else snapshot.decode(before)
        check_step(Step(copy, requests, batch_time, self.started_at, self.config, result))
        check_journal(self.journal, result.group)
        return self.answered

    def _run(self, before: bytes | None, requests: Sequence[Request], batch_time: int) -> tuple[StepResult, bytes]:
        group = None if before is None else snapshot.decode(before)
        result = step(self.group_id, group, requests, batch_time, started_at=self.started_at, config=self.config)
        after = b"" if result.group is None else snapshot.encode(result.group)
        return result, msgspec.json.encode((result.responses, result.journal, result.wake_at, after))

    def _settle(self, response: Response) -> Answer[Any]:
        answer = self._answers[response.address.correlation_id]
        assert answer.response is None, f"answered twice: {answer.request.address}"
        assert response.address == answer.request.address
        answer.response = response
        return answer

    # ---- requests ------------------------------------------------------------------------------------------

    def request(
        self,
        api: str,
        body: RequestBody,
        *,
        version: int | None = None,
        client: str = "client",
        host: str = "/127.0.0.1",
        at: int | None = None,
    ) -> Request:
        """A request that the broker appends now, or at another time."""
        timestamp = self.now if at is None else at
        place = Place(timestamp, 0, self._next_offset)
        self._next_offset += 1
        version = APIS[api].max_version if version is None else version
        address = ReplyAddress(api, version, f"request-{place.offset}", 3, timestamp)
        request = Request(place, address, client, host, body)
        self._answers[address.correlation_id] = Answer(request)
        return request

    def answer_to(self, request: Request) -> Answer[Any]:
        """What became of a request."""
        return self._answers[request.address.correlation_id]

    def send(self, api: str, body: RequestBody, **envelope: Any) -> Answer[Any]:
        """Send a request in a batch of its own."""
        request = self.request(api, body, **envelope)
        self.step([request])
        return self.answer_to(request)

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        client: str = "client",
        version: int = 9,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "consumer",
        protocols: Sequence[Protocol] | None = None,
    ) -> Answer[JoinGroupResponse]:
        """JoinGroup; without a member id it is a client's first."""
        body = JoinGroupRequest(
            self.group_id,
            session_ms,
            protocol_type,
            list(listing("range") if protocols is None else protocols),
            rebalance_ms,
            member_id,
            instance,
        )
        return self.send("JoinGroup", body, version=version, client=client)

    def join_new(self, client: str = "client", **request: Any) -> Answer[JoinGroupResponse]:
        """A dynamic member's two first requests: for a member id, then with it."""
        required = self.join(client=client, **request)
        assert required.error is Error.MEMBER_ID_REQUIRED, required.error
        return self.join(required.body.member_id, client=client, **request)

    def rejoin(self, member: Joined, **request: Any) -> Answer[JoinGroupResponse]:
        """JoinGroup of a member with the member id that it has."""
        return self.join(member.member_id, instance=member.group_instance_id, **request)

    def sync(
        self,
        member: Joined,
        assignments: Mapping[str, bytes] | None = None,
        *,
        version: int = 5,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> Answer[SyncGroupResponse]:
        """SyncGroup; a leader brings the assignments."""
        body = SyncGroupRequest(
            self.group_id,
            member.generation_id,
            member.member_id,
            member.group_instance_id,
            protocol_type,
            protocol_name,
            [MemberAssignment(*entry) for entry in (assignments or {}).items()],
        )
        return self.send("SyncGroup", body, version=version)

    def heartbeat(self, member: Joined) -> Answer[HeartbeatResponse]:
        """Heartbeat."""
        body = HeartbeatRequest(self.group_id, member.generation_id, member.member_id, member.group_instance_id)
        return self.send("Heartbeat", body)

    def leave(self, *leaving: Joined | LeavingMember, version: int = 5) -> Answer[LeaveGroupResponse]:
        """LeaveGroup; before version 3 of one member."""
        entries = [
            LeavingMember(entry.member_id, entry.group_instance_id) if isinstance(entry, Joined) else entry
            for entry in leaving
        ]
        if version < 3:
            return self.send("LeaveGroup", LeaveGroupRequest(self.group_id, entries[0].member_id), version=version)
        return self.send("LeaveGroup", LeaveGroupRequest(self.group_id, members=entries), version=version)

    def commit(
        self,
        member: Joined | None = None,
        offsets: Offsets | None = None,
        *,
        version: int = 9,
        metadata: str | None = None,
        leader_epoch: int = -1,
        commit_timestamp: int = -1,
        retention_ms: int = -1,
    ) -> Answer[OffsetCommitResponse]:
        """OffsetCommit, anonymous when no member is given."""
        member = member or Joined("")
        topics: dict[str, list[PartitionToCommit]] = {}
        for (topic, partition), offset in (offsets or {("topic", 0): 100}).items():
            entry = PartitionToCommit(partition, offset, leader_epoch, commit_timestamp, metadata)
            topics.setdefault(topic, []).append(entry)
        body = OffsetCommitRequest(
            self.group_id,
            [TopicToCommit(*topic) for topic in topics.items()],
            member.generation_id,
            member.member_id,
            member.group_instance_id,
            retention_ms,
        )
        return self.send("OffsetCommit", body, version=version)

    def commit_in_transaction(
        self,
        offsets: Mapping[tuple[str, int], int] | None = None,
        member: Joined | None = None,
        *,
        producer_id: int = 7,
        producer_epoch: int = 0,
        version: int = 5,
        metadata: str | None = None,
    ) -> Answer[TxnOffsetCommitResponse]:
        """TxnOffsetCommit, anonymous when no member is given."""
        member = member or Joined("")
        topics: dict[str, list[TxnPartitionToCommit]] = {}
        for (topic, partition), offset in (offsets or {("topic", 0): 100}).items():
            topics.setdefault(topic, []).append(TxnPartitionToCommit(partition, offset, -1, metadata))
        body = TxnOffsetCommitRequest(
            f"transaction-{producer_id}",
            self.group_id,
            producer_id,
            producer_epoch,
            [TxnTopicToCommit(*topic) for topic in topics.items()],
            member.generation_id,
            member.member_id,
            member.group_instance_id,
        )
        return self.send("TxnOffsetCommit", body, version=version)

    def end_transaction(
        self, *, commit: bool, producer_id: int = 7, producer_epoch: int = 0
    ) -> Answer[WriteTxnMarkersResponse]:
        """WriteTxnMarkers with one marker."""
        return self.send("WriteTxnMarkers", WriteTxnMarkersRequest([TxnMarker(producer_id, producer_epoch, commit)]))

    def delete_offsets(self, wanted: Mapping[str, Sequence[int]]) -> Answer[OffsetDeleteResponse]:
        """OffsetDelete."""
        topics = [
            TopicToDelete(name, [PartitionToDelete(index) for index in indexes]) for name, indexes in wanted.items()
        ]
        return self.send("OffsetDelete", OffsetDeleteRequest(self.group_id, topics))

    def topics_deleted(self, *topics: str) -> Answer[TopicsDeletedResponse]:
        """TopicsDeleted."""
        return self.send("TopicsDeleted", TopicsDeletedRequest(list(topics)))

    def fetch(
        self, wanted: Mapping[str, Sequence[int]] | None = None, *, require_stable: bool = False
    ) -> list[FetchedTopic]:
        """OffsetFetch of this group's offsets, all of them when none are named; the group must have no error."""
        topics = None if wanted is None else [TopicToFetch(name, list(indexes)) for name, indexes in wanted.items()]
        body = OffsetFetchRequest(groups=[GroupToFetch(self.group_id, topics)], require_stable=require_stable)
        answer: Answer[OffsetFetchResponse] = self.send("OffsetFetch", body)
        (group,) = answer.body.groups
        assert group.group_id == self.group_id
        assert group.error_code == Error.NONE
        return group.topics

    def fetch_one(self, topic: str = "topic", partition: int = 0) -> FetchedPartition:
        """OffsetFetch of one partition."""
        ((fetched,),) = (entry.partitions for entry in self.fetch({topic: [partition]}))
        return fetched

    def describe(self, version: int = 6) -> DescribedGroup:
        """DescribeGroups of this group."""
        answer: Answer[DescribeGroupsResponse]
        answer = self.send("DescribeGroups", DescribeGroupsRequest([self.group_id]), version=version)
        (described,) = answer.body.groups
        return described

    def delete(self) -> Error:
        """DeleteGroups of this group."""
        answer: Answer[DeleteGroupsResponse] = self.send("DeleteGroups", DeleteGroupsRequest([self.group_id]))
        assert [result.group_id for result in answer.body.results] == [self.group_id]
        return Error(answer.body.results[0].error_code)

    # ---- stories -------------------------------------------------------------------------------------------

    def join_with_members(self, count: int, *, static: int = 0, **request: Any) -> list[Joined]:
        """New members, the first ``static`` of them static, form a generation; nobody has synced. The first leads."""
        answers = [
            self.join(instance=f"instance-{i}", client=f"client-{i}", **request)
            if i < static
            else self.join_new(f"client-{i}", **request)
            for i in range(count)
        ]
        for _ in range(10):
            if not any(answer.parked for answer in answers):
                break
            self.sleep(DELAY_MS)
        members = [joined(answer) for answer in answers]
        assert self.state() is State.COMPLETING_REBALANCE
        assert [member.leads for member in members] == [True] + [False] * (count - 1)
        return members

    def sync_all(self, members: Sequence[Joined]) -> None:
        """The members sync, followers first; each gets what :func:`assignment_of` says."""
        followers_first = sorted(members, key=lambda member: member.leads)
        assignments = {member.member_id: assignment_of(member.member_id) for member in members}
        name = self.group.protocol_name
        protocol_type = self.group.protocol_type
        answers = [
            self.sync(member, assignments if member.leads else None, protocol_name=name, protocol_type=protocol_type)
            for member in followers_first
        ]
        for member, answer in zip(followers_first, answers, strict=True):
            assert answer.error is Error.NONE, answer.error
            assert answer.body.assignment == assignment_of(member.member_id)
        assert self.state() is State.STABLE

    def stable_group(self, members: int = 1, *, static: int = 0, **request: Any) -> list[Joined]:
        """A Stable group of new members; the first one leads."""
        joined_members = self.join_with_members(members, static=static, **request)
        self.sync_all(joined_members)
        return joined_members

    def empty_group(self) -> None:
        """A group that has lost its only member: Empty, in its second generation."""
        (member,) = self.stable_group(1)
        assert self.leave(member).error is Error.NONE
        assert self.state() is State.EMPTY


def errors_of(answer: Answer[OffsetCommitResponse] | Answer[TxnOffsetCommitResponse]) -> list[Error]:
    """The error of each partition of a commit."""
    partitions: list[CommittedPartition] = [p for topic in answer.body.topics for p in topic.partitions]
    return [Error(partition.error_code) for partition in partitions]


def leave_errors(answer: Answer[LeaveGroupResponse]) -> list[Error]:
    """The error of each entry of a LeaveGroup."""
    return [Error(entry.error_code) for entry in answer.body.members]


def delete_errors(answer: Answer[DeleteGroupsResponse]) -> list[DeletedGroup]:
    """The entries of a DeleteGroups."""
    return answer.body.results
