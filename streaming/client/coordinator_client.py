"""Kafka's group APIs as method calls: each appends a request event and waits for the coordinator's answer."""

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar

import msgspec

from coordinator_logic import apis, messages
from coordinator_logic.apis import Api, RequestT, ResponseT
from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
from coordinator_logic.errors import Error
from coordinator_logic.handlers.list_groups import list_groups
from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.client.answers import Answer
from streaming.client.directory import AnsweredChanges, read_directory
from streaming.client.errors import coordinator_error
from streaming.client.group_types import CLASSIC, CONSUMER, DESCRIBED_BY, AnyDescribedGroup, DescribeApi, DescribedT
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.request_reply import RequestReply
from streaming.contract.identity import PrincipalKey
from streaming.contract.records import UNREADABLE
from streaming.contract.topics import TopicNames
from streaming.contract.waits import COORDINATOR, begin_wait

EntryT = TypeVar("EntryT")

_NOT_FOUND = Error.GROUP_ID_NOT_FOUND

JOIN_TIMEOUT_MARGIN_MS = 5_000
"""How much longer than the rebalance timeout a client waits for the answer to JoinGroup, as in Kafka's client."""


class CoordinatorClient:
    """Sends requests to the coordinator and returns its answers. Safe to share between threads.

    bootstrap_servers: the brokers, as ``host:port,...``.
    topic_prefix: the prefix of the coordinator's topics.
    client_id, client_host: the names of this client in the coordinator's journal and in DescribeGroups; the host is
        this machine's name by default.
    principal: who uses this client, as Kafka names principals, for the journal; the coordinator takes it as a claim.
    principal_key: signs every request, so that the coordinator knows the principal; in place of ``principal``. See
        :func:`~streaming.contract.identity.read_principal_key`.
    request_timeout_ms: how long to wait for an answer; for JoinGroup at least the rebalance timeout.
    config: librdkafka settings for every Kafka client (security etc.).

    Every call raises :class:`~streaming.client.errors.CoordinatorError` if the request as a whole fails: with Kafka's
    error code, as RequestTimedOut without an answer, as CoordinatorNotAvailable without topics or brokers. Errors of
    single entries (a partition, a member, a group) are in the response.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic_prefix: str = "",
        client_id: str = "group-client",
        client_host: str | None = None,
        principal: str | None = None,
        principal_key: PrincipalKey | None = None,
        request_timeout_ms: int = 30_000,
        config: LibrdkafkaConfig | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topics = TopicNames(topic_prefix)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.config: LibrdkafkaConfig = dict(config or {})
        self._answered_changes = AnsweredChanges()
        self.channel = RequestReply(
            bootstrap_servers,
            self.topics,
            client_id,
            socket.gethostname() if client_host is None else client_host,
            self.config,
            principal=principal if principal_key is None else principal_key.principal,
            identity_key=None if principal_key is None else principal_key.key,
            connect_timeout=request_timeout_ms / 1000,
            stall_timeout=request_timeout_ms / 1000,
            on_answer=self._answered_changes.note,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the client's thread; outstanding requests fail."""
        self.channel.close()

    def send(
        self, group_id: str, api: str, version: int, body: Message | Mapping[str, Any]
    ) -> Future[ResponseEnvelope]:
        """Append any request, valid or not; returns the future answer as an unparsed envelope.

        Callbacks of the future run on the client's own thread and must not block. See :meth:`RequestReply.send
        <streaming.client.request_reply.RequestReply.send>` for its exceptions.
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
        """Append a request of an API's newest version; returns the future answer with its body typed.

        timeout_ms: how long to wait for the answer, by default ``request_timeout_ms``. Callbacks and exceptions of the
        future are those of :meth:`send`; an answer with an error code is a result, see :meth:`Answer.unwrap`.
        """
        limit = self.request_timeout_ms if timeout_ms is None else timeout_ms
        typed: Future[Answer[ResponseT]] = Future()
        typed.set_running_or_notify_cancel()
        end_wait = begin_wait(COORDINATOR, limit / 1000)

        def finish(answered: Future[ResponseEnvelope]) -> None:
            end_wait()
            try:
                typed.set_result(_decode_answer(api, answered.result()))
            except Exception as failure:
                typed.set_exception(failure)

        self.channel.send(group_id, api.name, api.max_version, body, limit / 1000).add_done_callback(finish)
        return typed

    def join_group(self, request: messages.JoinGroupRequest) -> messages.JoinGroupResponse:
        """Join a group, and wait until its next generation begins.

        Raises MemberIdRequired for a request without a member id; the exception's ``body`` has the id to use (KIP-394).
        """
        rebalance_timeout_ms = max(request.rebalance_timeout_ms, request.session_timeout_ms)
        timeout_ms = max(self.request_timeout_ms, rebalance_timeout_ms + JOIN_TIMEOUT_MARGIN_MS)
        return self.ask(apis.JOIN_GROUP, request.group_id, request, timeout_ms=timeout_ms).result().unwrap()

    def sync_group(self, request: messages.SyncGroupRequest) -> messages.SyncGroupResponse:
        """Wait for this member's assignment in its generation; the leader's request has the assignments of all."""
        return self.ask(apis.SYNC_GROUP, request.group_id, request).result().unwrap()

    def heartbeat(self, request: messages.HeartbeatRequest) -> messages.HeartbeatResponse:
        """Keep a member's session alive. Raises RebalanceInProgress when the member must rejoin."""
        return self.ask(apis.HEARTBEAT, request.group_id, request).result().unwrap()

    def leave_group(self, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
        """Remove members by member id or instance id; an error of a single member is in the response."""
        return self.ask(apis.LEAVE_GROUP, request.group_id, request).result().unwrap()

    def offset_commit(self, request: messages.OffsetCommitRequest) -> messages.OffsetCommitResponse:
        """Commit offsets; an error of a single partition is in the response."""
        return self.ask(apis.OFFSET_COMMIT, request.group_id, request).result().unwrap()

    def offset_fetch(
        self, groups: Sequence[messages.GroupToFetch], *, require_stable: bool = False
    ) -> messages.OffsetFetchResponse:
        """Committed offsets of several groups, in the order of ``groups``; sends one request event for each.

        require_stable: answer partitions with an open transaction with UNSTABLE_OFFSET_COMMIT (KIP-447).
        """
        requests = [
            (group.group_id, messages.OffsetFetchRequest(groups=[group], require_stable=require_stable))
            for group in groups
        ]
        fetched = self._of_each(
            apis.OFFSET_FETCH,
            requests,
            lambda body: body.groups or (),
            lambda group_id, answer: messages.FetchedGroup(group_id, [], answer.error_code),
        )
        return messages.OffsetFetchResponse(groups=fetched)

    def describe_groups(self, group_ids: Sequence[str]) -> messages.DescribeGroupsResponse:
        """Groups with their members, in the order of ``group_ids``; a missing group has GROUP_ID_NOT_FOUND (69)."""
        return messages.DescribeGroupsResponse(self._describe(CLASSIC, group_ids))

    def describe_consumer_groups(self, group_ids: Sequence[str]) -> messages.ConsumerGroupDescribeResponse:
        """Consumer groups (KIP-848) with epochs, assignments and targets, in the order of ``group_ids``.

        A classic group and a missing one have GROUP_ID_NOT_FOUND (69).
        """
        return messages.ConsumerGroupDescribeResponse(self._describe(CONSUMER, group_ids))

    def describe_any(self, group_ids: Sequence[str]) -> list[AnyDescribedGroup]:
        """Groups of any type, in the order of ``group_ids``; a missing group has GROUP_ID_NOT_FOUND (69)."""
        found: dict[str, AnyDescribedGroup] = {}
        for described_by in DESCRIBED_BY.values():
            missing = [each for each in group_ids if each not in found or found[each].error_code == _NOT_FOUND]
            for group in self._describe(described_by, missing):
                if group.group_id not in found or not group.error_code:
                    found[group.group_id] = group
        return [found[group_id] for group_id in group_ids]

    def _describe(
        self, described_by: DescribeApi[RequestT, ResponseT, DescribedT], group_ids: Sequence[str]
    ) -> list[DescribedT]:
        requests = [(group_id, described_by.request([group_id])) for group_id in group_ids]
        return self._of_each(described_by.api, requests, described_by.listed, described_by.failed)

    def _of_each(
        self,
        api: Api[RequestT, ResponseT],
        requests: Iterable[tuple[str, RequestT]],
        listed: Callable[[ResponseT], Sequence[EntryT]],
        failed: Callable[[str, Answer[ResponseT]], EntryT],
    ) -> list[EntryT]:
        """Ask about each group by itself, all at once; returns what the answers list, in the order of the requests.

        ``failed`` makes the entry of a group whose answer lists nothing.
        """
        entries: list[EntryT] = []
        for group_id, future in [(group_id, self.ask(api, group_id, body)) for group_id, body in requests]:
            answer = future.result()
            entries += (() if answer.body is None else listed(answer.body)) or [failed(group_id, answer)]
        return entries

    def delete_groups(self, group_ids: Sequence[str]) -> messages.DeleteGroupsResponse:
        """Delete groups without members; each group's error is in the response. Repeated ids count once."""
        results = self._of_each(
            apis.DELETE_GROUPS,
            [(group_id, messages.DeleteGroupsRequest([group_id])) for group_id in dict.fromkeys(group_ids)],
            lambda body: body.results,
            lambda group_id, answer: messages.DeletedGroup(group_id, answer.error_code),
        )
        return messages.DeleteGroupsResponse(results)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> messages.OffsetDeleteResponse:
        """Delete committed offsets (KIP-496).

        A partition of a topic that the group subscribes to has GROUP_SUBSCRIBED_TO_TOPIC (86) in the response. Raises
        NonEmptyGroup for a group with members that are not consumers: their subscriptions are unknown.
        """
        topics = [
            messages.TopicToDelete(topic, [messages.PartitionToDelete(number) for number in numbers])
            for topic, numbers in grouped_by_topic(partitions).items()
        ]
        return self.ask(apis.OFFSET_DELETE, group_id, messages.OffsetDeleteRequest(group_id, topics)).result().unwrap()

    def topics_deleted(
        self, topics: Sequence[str], topic_ids: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, Error]:
        """Have every group delete its offsets of topics that no longer exist; returns each group's error.

        A broker's coordinator does this automatically. Here the program that deletes the topics must call it.

        topic_ids: the ids of the deleted topics, in Kafka's text form, by name. They tell a deleted topic from one that
            was created again under its name. For a name without ids, every topic of the name was deleted.
        """
        ids = {name: list(of_name) for name, of_name in (topic_ids or {}).items()}
        request = messages.TopicsDeletedRequest(list(topics), ids)
        answers = {
            group.group_id: self.ask(apis.TOPICS_DELETED, group.group_id, request)
            for group in self.list_groups().groups
        }
        return {group_id: answer.result().error for group_id, answer in answers.items()}

    def set_group_config(self, group_id: str, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Change a consumer group's own configuration, and return all of it, by Kafka's names.

        changes: new values by name, as text; None removes one. Without any, the configuration is only read. Raises
            CoordinatorError with INVALID_CONFIG for a wrong name or value.
        """
        request = messages.SetGroupConfigRequest(group_id, dict(changes))
        return self.ask(apis.SET_GROUP_CONFIG, group_id, request).result().unwrap().configs

    def find_coordinator(self, group_id: str) -> messages.Coordinator:
        """The group's coordinator; its node id is the partition of the request topic that the group belongs to."""
        request = messages.FindCoordinatorRequest(coordinator_keys=[group_id])
        what = f"FindCoordinator for group {group_id!r}"
        coordinators = self.ask(apis.FIND_COORDINATOR, group_id, request).result().unwrap().coordinators
        if not coordinators:
            raise coordinator_error(Error.UNKNOWN_SERVER_ERROR, f"{what}: the answer is empty")
        if coordinators[0].error_code != Error.NONE:
            raise coordinator_error(coordinators[0].error_code, f"{what}: {coordinators[0].error_message}")
        return coordinators[0]

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> messages.ListGroupsResponse:
        """The groups in one of ``states`` and of one of ``types``, by group id; without either, all groups.

        States and types are compared without regard to case. The listing is read from the coordinator's directory
        topic; no request is sent. It shows what this client's answers have changed.
        """
        changes = self._answered_changes.missing()
        entries = read_directory(
            self.bootstrap_servers,
            self.topics.directory,
            self.client_id,
            self.config,
            self.request_timeout_ms / 1000,
            changes,
        )
        self._answered_changes.listed(changes)
        return list_groups(entries, messages.ListGroupsRequest(list(states), list(types)))


def _decode_answer(api: Api[RequestT, ResponseT], envelope: ResponseEnvelope) -> Answer[ResponseT]:
    try:
        body = msgspec.json.decode(envelope.body, type=api.response_type | None)
    except UNREADABLE as failure:
        raise coordinator_error(
            Error.UNKNOWN_SERVER_ERROR,
            f"the answer to {api.name} for group {envelope.group_id!r} cannot be read: {failure}",
        ) from failure
    return Answer(api.name, envelope.group_id, envelope.error_code, envelope.error_message, body)
