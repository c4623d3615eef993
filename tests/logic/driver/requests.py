"""A method for each request that a client can send to a driven group."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
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
    PartitionToReset,
    Protocol,
    ResetOffsetsRequest,
    ResetOffsetsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TopicsDeletedRequest,
    TopicsDeletedResponse,
    TopicToCommit,
    TopicToDelete,
    TopicToFetch,
    TopicToReset,
    TxnMarker,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnPartitionToCommit,
    TxnTopicToCommit,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.logic.driver.answers import Answer, Joined, listing
from tests.logic.driver.stepped_group import REBALANCE_MS, SESSION_MS, SteppedGroup

Offsets = Mapping[tuple[str, int], int]


class RequestedGroup(SteppedGroup):
    """A stepped group with a method for each API: the request is sent in a batch of its own."""

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
        reason: str | None = None,
    ) -> Answer[JoinGroupResponse]:
        """Send JoinGroup; without a member id it is a first join."""
        body = JoinGroupRequest(
            self.group_id,
            session_ms,
            protocol_type,
            list(listing("range") if protocols is None else protocols),
            rebalance_ms,
            member_id,
            instance,
            reason=reason,
        )
        return self.send("JoinGroup", body, version=version, client=client)

    def join_new(self, client: str = "client", **request: Any) -> Answer[JoinGroupResponse]:
        """Send the two first requests of a dynamic member: one for a member id, one with it."""
        required = self.join(client=client, **request)
        assert required.error is Error.MEMBER_ID_REQUIRED, required.error
        return self.join(required.body.member_id, client=client, **request)

    def rejoin(self, member: Joined, **request: Any) -> Answer[JoinGroupResponse]:
        """Send JoinGroup for a member with its member id."""
        return self.join(member.member_id, instance=member.group_instance_id, **request)

    def sync(
        self,
        member: Joined,
        assignments: Mapping[str, bytes] | None = None,
        *,
        version: int = 5,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        too_large: bool = False,
    ) -> Answer[SyncGroupResponse]:
        """Send SyncGroup; a leader passes the assignments, or says that they are too large."""
        body = SyncGroupRequest(
            self.group_id,
            member.generation_id,
            member.member_id,
            member.group_instance_id,
            protocol_type,
            protocol_name,
            [MemberAssignment(*entry) for entry in (assignments or {}).items()],
            assignments_too_large=too_large,
        )
        return self.send("SyncGroup", body, version=version)

    def heartbeat(self, member: Joined) -> Answer[HeartbeatResponse]:
        """Send Heartbeat."""
        body = HeartbeatRequest(self.group_id, member.generation_id, member.member_id, member.group_instance_id)
        return self.send("Heartbeat", body)

    def leave(self, *leaving: Joined | LeavingMember, version: int = 5) -> Answer[LeaveGroupResponse]:
        """Send LeaveGroup; a version before 3 names one member."""
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
        topic_id: str = "",
    ) -> Answer[OffsetCommitResponse]:
        """Send OffsetCommit, without a member if none is passed."""
        member = member or Joined("")
        topics: dict[str, list[PartitionToCommit]] = {}
        for (topic, partition), offset in (offsets or {("topic", 0): 100}).items():
            entry = PartitionToCommit(partition, offset, leader_epoch, commit_timestamp, metadata)
            topics.setdefault(topic, []).append(entry)
        body = OffsetCommitRequest(
            self.group_id,
            [TopicToCommit(*topic, topic_id) for topic in topics.items()],
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
        topic_id: str = "",
    ) -> Answer[TxnOffsetCommitResponse]:
        """Send TxnOffsetCommit, without a member if none is passed."""
        member = member or Joined("")
        topics: dict[str, list[TxnPartitionToCommit]] = {}
        for (topic, partition), offset in (offsets or {("topic", 0): 100}).items():
            topics.setdefault(topic, []).append(TxnPartitionToCommit(partition, offset, -1, metadata))
        body = TxnOffsetCommitRequest(
            f"transaction-{producer_id}",
            self.group_id,
            producer_id,
            producer_epoch,
            [TxnTopicToCommit(*topic, topic_id) for topic in topics.items()],
            member.generation_id,
            member.member_id,
            member.group_instance_id,
        )
        return self.send("TxnOffsetCommit", body, version=version)

    def end_transaction(
        self, *, commit: bool, producer_id: int = 7, producer_epoch: int = 0
    ) -> Answer[WriteTxnMarkersResponse]:
        """Send WriteTxnMarkers with one marker."""
        return self.send("WriteTxnMarkers", WriteTxnMarkersRequest([TxnMarker(producer_id, producer_epoch, commit)]))

    def delete_offsets(self, wanted: Mapping[str, Sequence[int]]) -> Answer[OffsetDeleteResponse]:
        """Send OffsetDelete."""
        topics = [
            TopicToDelete(name, [PartitionToDelete(index) for index in indexes]) for name, indexes in wanted.items()
        ]
        return self.send("OffsetDelete", OffsetDeleteRequest(self.group_id, topics))

    def reset_offsets(
        self, offsets: Offsets, expected: Offsets | None = None, *, topic_id: str = "", **fields: Any
    ) -> Answer[ResetOffsetsResponse]:
        """Send ResetOffsets; ``expected`` are the offsets that the operator has seen, any if none are passed."""
        topics: dict[str, list[PartitionToReset]] = {}
        for (topic, partition), offset in offsets.items():
            seen = None if expected is None else expected.get((topic, partition), -1)
            topics.setdefault(topic, []).append(PartitionToReset(partition, offset, seen))
        body = ResetOffsetsRequest(
            self.group_id, [TopicToReset(*topic, topic_id) for topic in topics.items()], **fields
        )
        return self.send("ResetOffsets", body)

    def topics_deleted(self, *topics: str, **ids: list[str]) -> Answer[TopicsDeletedResponse]:
        """Send TopicsDeleted; ``ids`` are by the names of further topics."""
        return self.send("TopicsDeleted", TopicsDeletedRequest([*topics, *ids], ids))

    def fetch(
        self, wanted: Mapping[str, Sequence[int]] | None = None, *, require_stable: bool = False, topic_id: str = ""
    ) -> list[FetchedTopic]:
        """Send OffsetFetch, of all offsets if no partitions are passed; asserts that the group has no error."""
        named = None if wanted is None else wanted.items()
        topics = None if named is None else [TopicToFetch(name, list(each), topic_id) for name, each in named]
        body = OffsetFetchRequest(groups=[GroupToFetch(self.group_id, topics)], require_stable=require_stable)
        answer: Answer[OffsetFetchResponse] = self.send("OffsetFetch", body)
        (group,) = answer.body.groups
        assert group.group_id == self.group_id
        assert group.error_code == Error.NONE
        return group.topics

    def fetch_one(self, topic: str = "topic", partition: int = 0, *, topic_id: str = "") -> FetchedPartition:
        """Send OffsetFetch for one partition."""
        ((fetched,),) = (entry.partitions for entry in self.fetch({topic: [partition]}, topic_id=topic_id))
        return fetched

    def describe(self, version: int = 6) -> DescribedGroup:
        """Send DescribeGroups."""
        answer: Answer[DescribeGroupsResponse]
        answer = self.send("DescribeGroups", DescribeGroupsRequest([self.group_id]), version=version)
        (described,) = answer.body.groups
        return described

    def delete(self) -> Error:
        """Send DeleteGroups."""
        answer: Answer[DeleteGroupsResponse] = self.send("DeleteGroups", DeleteGroupsRequest([self.group_id]))
        assert [result.group_id for result in answer.body.results] == [self.group_id]
        return Error(answer.body.results[0].error_code)
