"""Kafka's group APIs as calls: each appends a request event and waits for the coordinator's answer."""

import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

import msgspec

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.consumer_protocol.primitives import grouped_by_topic
from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups
from coordinator_logic.messages import (
    Coordinator,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchedGroup,
    FindCoordinatorRequest,
    GroupToFetch,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    Message,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToDelete,
    ResponseEnvelope,
    SyncGroupRequest,
    SyncGroupResponse,
    TopicsDeletedRequest,
    TopicToDelete,
)
from streaming.client import apis
from streaming.client.apis import Answer, Api, RequestT, ResponseT
from streaming.client.directory import read_directory
from streaming.client.errors import coordinator_error
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.request_reply import RequestReply
from streaming.topics import TopicNames

JOIN_TIMEOUT_MARGIN_MS = 5_000
"""How much longer than the rebalance timeout an answer to JoinGroup is waited for, as in Kafka's client."""


class CoordinatorClient:
    """Sends requests to the coordinator and gives back its answers. Safe to share between threads.

    bootstrap_servers, config: how to reach Kafka; ``config`` is added to every librdkafka client (security etc.).
    topic_prefix: the prefix of the coordinator's topics.
    client_id, client_host: how the coordinator's records and DescribeGroups name this client.
    request_timeout_ms: how long an answer is waited for; JoinGroup has its rebalance timeout on top.

    Every call raises :class:`~streaming.client.errors.CoordinatorError` when the whole request failed: with
    Kafka's error code, RequestTimedOut when no answer came, CoordinatorNotAvailable when there is no such topic
    or no broker. Errors of single entries (a partition, a member, a group) are in the response.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic_prefix: str = "",
        client_id: str = "group-client",
        client_host: str | None = None,
        request_timeout_ms: int = 30_000,
        config: LibrdkafkaConfig | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topics = TopicNames(topic_prefix)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.config: LibrdkafkaConfig = dict(config or {})
        self.channel = RequestReply(
            bootstrap_servers,
            self.topics,
            client_id,
            socket.gethostname() if client_host is None else client_host,
            self.config,
            connect_timeout=request_timeout_ms / 1000,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the client's thread and connections; requests that still wait for an answer fail."""
        self.channel.close()

    def send(
        self, group_id: str, api: str, version: int, body: Message | Mapping[str, Any]
    ) -> Future[ResponseEnvelope]:
        """Append any request; the future has the answer as it came, also one with an error code.

        What is hung on the future runs on the client's own thread, and must not block it.
        """
        return self.channel.send(group_id, api, version, body, self.request_timeout_ms / 1000)

    def ask(
        self,
        api: Api[RequestT, ResponseT],
        group_id: str,
        body: RequestT,
        *,
        timeout_ms: int | None = None,
    ) -> Future[Answer[ResponseT]]:
        """Append a request; the future has the answer with its body typed, also one with an error code."""
        limit = self.request_timeout_ms if timeout_ms is None else timeout_ms
        typed: Future[Answer[ResponseT]] = Future()
        typed.set_running_or_notify_cancel()

        def finish(answered: Future[ResponseEnvelope]) -> None:
            try:
                typed.set_result(_typed(api, answered.result()))
            except Exception as failure:
                typed.set_exception(failure)

        self.channel.send(group_id, api.name, api.version, body, limit / 1000).add_done_callback(finish)
        return typed

    def join_group(self, request: JoinGroupRequest) -> JoinGroupResponse:
        """Join a group, and wait for the generation to begin.

        Without a member id MemberIdRequired is raised; its ``body`` has the id to join again with.
        """
        rebalance_timeout_ms = max(request.rebalance_timeout_ms, request.session_timeout_ms)
        timeout_ms = max(self.request_timeout_ms, rebalance_timeout_ms + JOIN_TIMEOUT_MARGIN_MS)
        return self.ask(apis.JOIN_GROUP, request.group_id, request, timeout_ms=timeout_ms).result().unwrap()

    def sync_group(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Get this generation's assignment; the leader brings everybody's."""
        return self.ask(apis.SYNC_GROUP, request.group_id, request).result().unwrap()

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Keep the session alive; RebalanceInProgress is raised when it is time to join again."""
        return self.ask(apis.HEARTBEAT, request.group_id, request).result().unwrap()

    def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members, by member id or by instance id."""
        return self.ask(apis.LEAVE_GROUP, request.group_id, request).result().unwrap()

    def offset_commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """Commit positions; an error of a single partition is in the response."""
        return self.ask(apis.OFFSET_COMMIT, request.group_id, request).result().unwrap()

    def offset_fetch(self, groups: Sequence[GroupToFetch], *, require_stable: bool = False) -> OffsetFetchResponse:
        """Committed offsets of several groups, in the order asked: one request event for each."""
        answers = [
            self.ask(
                apis.OFFSET_FETCH,
                group.group_id,
                OffsetFetchRequest(groups=[group], require_stable=require_stable),
            )
            for group in groups
        ]
        fetched: list[FetchedGroup] = []
        for group, answer in zip(groups, answers, strict=True):
            body = answer.result().body
            failed = FetchedGroup(group.group_id, [], answer.result().error_code)
            fetched += body.groups if body is not None and body.groups else [failed]
        return OffsetFetchResponse(groups=fetched)

    def describe_groups(self, group_ids: Sequence[str]) -> DescribeGroupsResponse:
        """Groups with their members, in the order asked; a group that does not exist has error 69."""
        answers = [
            self.ask(apis.DESCRIBE_GROUPS, group_id, DescribeGroupsRequest([group_id])) for group_id in group_ids
        ]
        described: list[DescribedGroup] = []
        for group_id, answer in zip(group_ids, answers, strict=True):
            body = answer.result().body
            failed = DescribedGroup(group_id, answer.result().error_code, answer.result().message)
            described += body.groups if body is not None and body.groups else [failed]
        return DescribeGroupsResponse(described)

    def delete_groups(self, group_ids: Sequence[str]) -> DeleteGroupsResponse:
        """Delete groups that have no members; a group that is named twice is deleted once."""
        distinct = list(dict.fromkeys(group_ids))
        answers = [self.ask(apis.DELETE_GROUPS, group_id, DeleteGroupsRequest([group_id])) for group_id in distinct]
        results: list[DeletedGroup] = []
        for group_id, answer in zip(distinct, answers, strict=True):
            body = answer.result().body
            failed = DeletedGroup(group_id, answer.result().error_code)
            results += body.results if body is not None and body.results else [failed]
        return DeleteGroupsResponse(results)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteResponse:
        """Forget committed offsets; a partition of a topic that the group reads has error 86 in the response (KIP-496).

        NonEmptyGroup is raised for a group with members of which nobody can say what they read: no consumers.
        """
        topics = [
            TopicToDelete(topic, [PartitionToDelete(number) for number in numbers])
            for topic, numbers in grouped_by_topic(partitions).items()
        ]
        return self.ask(apis.OFFSET_DELETE, group_id, OffsetDeleteRequest(group_id, topics)).result().unwrap()

    def topics_deleted(self, topics: Sequence[str]) -> dict[str, Error]:
        """Tell every group of the directory that topics are gone: it forgets their offsets, and answers NONE.

        A broker's coordinator learns that by itself. This one has to be told by whoever deletes topics.
        """
        request = TopicsDeletedRequest(list(topics))
        answers = {
            group.group_id: self.ask(apis.TOPICS_DELETED, group.group_id, request)
            for group in self.list_groups().groups
        }
        return {group_id: answer.result().error for group_id, answer in answers.items()}

    def find_coordinator(self, group_id: str) -> Coordinator:
        """The partition of the request topic that the group belongs to."""
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        coordinators = self.ask(apis.FIND_COORDINATOR, group_id, request).result().unwrap().coordinators
        for coordinator in coordinators:
            if coordinator.error_code != Error.NONE:
                raise coordinator_error(
                    coordinator.error_code, f"FindCoordinator for group {group_id!r}: {coordinator.error_message}"
                )
            return coordinator
        raise coordinator_error(Error.UNKNOWN_SERVER_ERROR, f"FindCoordinator for group {group_id!r}: no answer")

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> ListGroupsResponse:
        """All groups, or those in one of ``states`` and of one of ``types`` (any case), by group id.

        No request is sent: the listing is made from the coordinator's directory topic.
        """
        entries = read_directory(
            self.bootstrap_servers,
            self.topics.directory,
            self.client_id,
            self.config,
            self.request_timeout_ms / 1000,
        )
        return list_groups(entries, ListGroupsRequest(list(states), list(types)))


def _typed(api: Api[RequestT, ResponseT], envelope: ResponseEnvelope) -> Answer[ResponseT]:
    try:
        body = msgspec.json.decode(envelope.body, type=api.response | None)
    except msgspec.DecodeError as failure:
        raise coordinator_error(
            Error.UNKNOWN_SERVER_ERROR, f"{api.name} for group {envelope.group_id!r} has a strange answer: {failure}"
        ) from failure
    return Answer(api.name, envelope.group_id, envelope.error_code, envelope.error_message, body)
