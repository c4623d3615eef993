"""ConsumerGroupHeartbeat (KIP-848): the topics that it is about are described to the coordinator with it."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from coordinator_logic.apis import CONSUMER_GROUP_HEARTBEAT
from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    Message,
    TopicDescription,
)
from streaming.client.errors import CoordinatorNotAvailable
from streaming.gateway.groups.awaited_heartbeats import AwaitedHeartbeats, MemberHeartbeats, advanced
from streaming.gateway.groups.backend import GroupBackend, decode_response
from streaming.gateway.groups.error_responses import outage_error
from streaming.gateway.groups.large_reads import enter_room
from streaming.gateway.groups.list_requests import MAX_ENTRIES, entry_count
from streaming.gateway.groups.subscriptions.heartbeat_topics import HeartbeatTopics, TopicsHidden
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicy, consumer_policy
from streaming.gateway.security.permissions import Operation
from streaming.gateway.wire.client_request import ClientRequest
from streaming.gateway.wire.loop_share import loop_time

NOT_SENT = -1
"""The rebalance timeout in a heartbeat of a member that sends what has changed."""
TYPICAL_TOPIC_BYTES, TYPICAL_PARTITION_BYTES = 50, 5
"""In an assignment as JSON."""
NO_LONGER_A_MEMBER = frozenset({Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND, Error.FENCED_MEMBER_EPOCH})


def consumer_group_heartbeat_policy(timeouts: GroupTimeouts, body: Message | None = None) -> TimeoutPolicy:
    """After either error, Java's client sends its next heartbeat with all fields.

    So does librdkafka after COORDINATOR_NOT_AVAILABLE: the member is not fenced if the heartbeat in the log has
    advanced its epoch. librdkafka repeats the same request after COORDINATOR_LOAD_IN_PROGRESS, so that must not be in
    the log.
    """
    policy = consumer_policy(timeouts)._replace(unanswered=Error.COORDINATOR_NOT_AVAILABLE)
    if isinstance(body, ConsumerGroupHeartbeatRequest) and not body.member_id:
        # The coordinator generates an id (v0): each repeated join would leave an unused member behind.
        return policy._replace(seconds=timeouts.request_seconds)
    if isinstance(body, ConsumerGroupHeartbeatRequest) and body.member_epoch < 0:
        return policy._replace(seconds=timeouts.leave_seconds)
    return policy


class ConsumerGroupHeartbeatHandler:
    """Answers heartbeats within their timeout, with a retriable error if the coordinator has not answered by then."""

    def __init__(self, backend: GroupBackend) -> None:
        self._backend = backend
        self._topics = HeartbeatTopics(backend)
        self._watched = backend.watched
        self._awaited = AwaitedHeartbeats()

    async def handle(self, request: ClientRequest) -> ConsumerGroupHeartbeatResponse:
        """Answer a heartbeat. The caller needs READ on the group, and DESCRIBE on each topic that it names."""
        body: ConsumerGroupHeartbeatRequest = request.payload
        if not await self._backend.authorizer.allows(request.caller, Operation.READ, body.group_id):
            return _refused(Error.GROUP_AUTHORIZATION_FAILED)
        names, owned = body.subscribed_topic_names or (), body.topic_partitions or ()
        if len(names) + len(owned) + entry_count(owned) > MAX_ENTRIES:
            return _refused(Error.INVALID_REQUEST)
        topics: Sequence[TopicDescription] = ()
        if body.member_epoch == JOIN_EPOCH:
            refusal = await self._backend.refusal(CONSUMER_GROUP_HEARTBEAT, body.group_id, body, request.caller)
            if refusal is not None:
                return _refused(refusal)
        if body.member_epoch >= JOIN_EPOCH:
            try:
                topics = await self._topics.of(request.caller, body)
            except TopicsHidden:
                return _refused(Error.TOPIC_AUTHORIZATION_FAILED)
            except CoordinatorNotAvailable:
                return _refused(self._backend.policies.of(CONSUMER_GROUP_HEARTBEAT, body).unsent)
        is_new = self._watched.get(body.group_id) is None
        has_others = is_new and self._backend.has_members(body.group_id)
        response = await self._ask_in_room(request, replace(body, topics=list(topics)))
        self._note(body, topics, response, has_others=has_others)
        return response

    async def _ask_in_room(
        self, request: ClientRequest, body: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        """Ask the coordinator, once there is room for the assignment if the heartbeat itself asks for it or changes it.

        A member that says nothing is sent its assignment when that has changed. It must not wait: its session ends.
        """
        if _says_nothing(body):
            return await self._ask(request, body)
        policy = self._backend.policies.of(CONSUMER_GROUP_HEARTBEAT, body)
        member = body.instance_id or body.member_id
        room = self._backend.reads.member_room(CONSUMER_GROUP_HEARTBEAT.name, request.caller, body.group_id, member)
        async with AsyncExitStack() as stack:
            answered = await enter_room(stack, room, policy.seconds)
            if answered is None:
                return _refused(policy.unsent)
            response = await self._ask(request, body)
            answered(_size(response))
            return response

    async def _ask(self, request: ClientRequest, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """Ask the coordinator, or answer with what an earlier heartbeat of the member has led to."""
        policy = self._backend.policies.of(CONSUMER_GROUP_HEARTBEAT, body)
        deadline = loop_time() + policy.seconds
        earlier = self._awaited.find(body)
        if earlier is not None and earlier.is_open and not earlier.may_repeat:
            await earlier.settle(policy.seconds)
            if earlier.is_open:
                return _refused(policy.unanswered if earlier.is_appended else policy.unsent)
        if earlier is not None and not earlier.is_open:
            news = earlier.pop_news()
            if news is not None:
                if news.error_code == Error.NONE:
                    # The heartbeat itself goes on as one of the member that has received the news.
                    going_on = advanced(body, news)
                    self._send(request, going_on, self._awaited.begin(going_on))
                return news
            earlier = None
        heartbeats = earlier or self._awaited.begin(body)
        self._send(request, body, heartbeats)
        await heartbeats.settle(deadline - loop_time())
        if heartbeats.is_open:
            return _refused(policy.unanswered if heartbeats.is_appended else policy.unsent)
        self._awaited.end(body, heartbeats)
        response = heartbeats.pop_response()
        if response is None and heartbeats.failure is not None:
            return _refused(outage_error(policy, heartbeats.failure, appended=heartbeats.is_appended))
        return response or _refused(policy.unanswered)

    def _send(self, request: ClientRequest, body: ConsumerGroupHeartbeatRequest, heartbeats: MemberHeartbeats) -> None:
        timeouts, api = self._backend.policies.timeouts, CONSUMER_GROUP_HEARTBEAT
        seconds = max(timeouts.late_heartbeat_seconds, self._backend.policies.of(api, body).seconds)
        event = self._backend.channel.send(body.group_id, api.name, request.version, body, request.caller, seconds)
        heartbeats.add(event, lambda envelope: decode_response(api, body, request.version, envelope))

    def _note(
        self,
        body: ConsumerGroupHeartbeatRequest,
        topics: Sequence[TopicDescription],
        response: ConsumerGroupHeartbeatResponse,
        *,
        has_others: bool,
    ) -> None:
        """Remember what the member subscribes to, and what its group has learned.

        ``has_others``: the group is new to this gateway and has members, of which some may speak the classic protocol.
        """
        error = Error(response.error_code)
        if body.member_epoch < JOIN_EPOCH or error in NO_LONGER_A_MEMBER:
            self._watched.remove_member(body.group_id, body.member_id)
        elif error is Error.NONE or (error.retriable and body.member_epoch > JOIN_EPOCH):
            now = time.monotonic()
            group = self._watched.watch(body.group_id, now)
            group.see(response.member_id or body.member_id, body, now)
            group.needs_lookup |= has_others
            if error is Error.NONE:
                group.learned(topics)


def _says_nothing(body: ConsumerGroupHeartbeatRequest) -> bool:
    said = (body.subscribed_topic_names, body.subscribed_topic_regex, body.server_assignor, body.topic_partitions)
    return body.rebalance_timeout_ms == NOT_SENT and said == (None, None, None, None)


def _size(response: ConsumerGroupHeartbeatResponse) -> int:
    """About how many bytes a response has."""
    topics = () if response.assignment is None else response.assignment.topic_partitions
    return TYPICAL_TOPIC_BYTES * len(topics) + TYPICAL_PARTITION_BYTES * entry_count(topics)


def _refused(error: Error) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)
