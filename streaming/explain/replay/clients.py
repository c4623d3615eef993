"""The clients of a what-if: each answers at once to what the replayed group tells it."""

from collections.abc import Iterable
from itertools import count

import msgspec

from coordinator_logic.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitRequest,
    RequestBody,
    SyncGroupRequest,
)
from streaming.explain.replay.world import World, refusal

REPLAY_PARTITION = 2**31 - 1
"""The partition of the requests that the replay makes up; the log has no such partition."""

VERSIONS = {JOIN_GROUP.name: 5, SYNC_GROUP.name: 3, HEARTBEAT.name: 3, LEAVE_GROUP.name: 3}
"""The first versions with static members; a replayed client speaks them."""


class _Client:
    """One client: the way it joins, and what the group has last told it."""

    def __init__(self, name: str, request: Request, body: JoinGroupRequest) -> None:
        self.name = name
        self.request = request
        self.body = body
        self.member_id = ""
        self.generation = -1
        self.waits = False
        """Whether a join or a sync of the client is not answered yet."""
        self.is_member = False


class Clients:
    """All clients of a group. ``static`` and ``session_ms`` are those of Changes."""

    def __init__(self, world: World, static: bool, session_ms: int | None) -> None:
        self.world = world
        self._static = static
        self._session_ms = session_ms
        self._clients: dict[str, _Client] = {}
        self._asked: dict[str, _Client] = {}
        self._numbers = count()

    def pass_on(self, request: Request) -> None:
        """Let the group handle a request of the log that does not depend on a membership."""
        self._react(self.world.handle(request), request.place.timestamp)

    def start(self, name: str, request: Request, body: JoinGroupRequest) -> None:
        """Let a client join that has started, or joins again for a reason of its own."""
        self._pass_time(request.place.timestamp)
        body = self._changed(name, body)
        client = self._clients.get(name)
        if client is None or not body.member_id:
            client = self._clients[name] = _Client(name, request, body)
        client.body = body
        self._join(client, request.place.timestamp)

    def leave(self, name: str, request: Request) -> None:
        """Let a client leave; a static one only stops."""
        time = request.place.timestamp
        self._pass_time(time)
        client = self._clients.get(name)
        if client is None or not client.is_member or client.body.group_instance_id is not None:
            return
        member = LeavingMember(client.member_id)
        client.is_member = False
        self._send(client, LEAVE_GROUP.name, LeaveGroupRequest(client.body.group_id, members=[member]), time)

    def sign_of_life(self, name: str, request: Request) -> None:
        """Let a client commit as in the log, or send a heartbeat; one that waits for an answer sends neither."""
        time = request.place.timestamp
        self._pass_time(time)
        client = self._clients.get(name)
        if client is None or client.waits or not client.is_member:
            return
        body, instance = request.body, client.body.group_instance_id
        if isinstance(body, OffsetCommitRequest):
            commit = msgspec.structs.replace(
                body,
                member_id=client.member_id,
                generation_id_or_member_epoch=client.generation,
                group_instance_id=instance,
            )
            self._send(client, request.address.api, commit, time, request.address.version)
        else:
            beat = HeartbeatRequest(client.body.group_id, client.generation, client.member_id, instance)
            self._send(client, HEARTBEAT.name, beat, time)

    def _changed(self, name: str, body: JoinGroupRequest) -> JoinGroupRequest:
        instance = name if self._static else body.group_instance_id
        session = body.session_timeout_ms if self._session_ms is None else self._session_ms
        return msgspec.structs.replace(body, group_instance_id=instance, session_timeout_ms=session)

    def _pass_time(self, time: int) -> None:
        self._react(self.world.wait(time), time)

    def _join(self, client: _Client, time: int) -> None:
        client.waits = True
        body = msgspec.structs.replace(client.body, member_id=client.member_id)
        self._send(client, JOIN_GROUP.name, body, time)

    def _send(self, client: _Client, api: str, body: RequestBody, time: int, version: int | None = None) -> None:
        number = next(self._numbers)
        correlation_id = f"replay-{number}"
        self._asked[correlation_id] = client
        address = ReplyAddress(api, VERSIONS[api] if version is None else version, correlation_id, 0, time)
        sender = client.request
        place = Place(time, REPLAY_PARTITION, number)
        request = Request(place, address, sender.client_id, sender.client_host, body)
        self._react(self.world.handle(request), time)

    def _react(self, responses: Iterable[Response], time: int) -> None:
        for response in responses:
            client = self._asked.pop(response.address.correlation_id, None)
            if client is None or self._clients.get(client.name) is not client:
                continue
            error = refusal(response)
            if isinstance(response.body, JoinGroupResponse):
                self._joined(client, response.body, error, time)
            elif error == Error.UNKNOWN_MEMBER_ID:
                client.member_id, client.is_member = "", False
                self._join(client, time)
            elif error in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION):
                self._join(client, time)
            elif response.address.api == SYNC_GROUP.name:
                client.waits = False
            elif error == Error.FENCED_INSTANCE_ID:
                client.is_member = False

    def _joined(self, client: _Client, body: JoinGroupResponse, error: int, time: int) -> None:
        if error == Error.MEMBER_ID_REQUIRED:
            client.member_id = body.member_id
            self._join(client, time)
        elif error == Error.UNKNOWN_MEMBER_ID and client.member_id:
            client.member_id = ""
            self._join(client, time)
        elif error:
            client.waits = client.is_member = False
        else:
            client.member_id, client.generation, client.is_member = body.member_id, body.generation_id, True
            # What is assigned does not change how the group goes on.
            assignments = [MemberAssignment(member.member_id, b"") for member in body.members]
            instance = client.body.group_instance_id
            group_id = client.body.group_id
            sync = SyncGroupRequest(group_id, body.generation_id, body.member_id, instance, assignments=assignments)
            self._send(client, SYNC_GROUP.name, sync, time)
